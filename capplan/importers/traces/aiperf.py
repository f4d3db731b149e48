"""AIPerf's record of each request, `profile_export.jsonl`.

Lengths are the client's own counts. Keys as written by AIPerf 0.13.
"""

from capplan.importers.traces.layout import Layout

LAYOUT = Layout(
    "AIPerf request records",
    {
        "arrival": "metadata.request_start_ns",
        "prompt": "metrics.input_sequence_length.value",
        "output": "metrics.output_sequence_length.value",
        "failed": "error",
    },
    unit="ns",
    caveats=("a benchmark's own load, not what users asked: its rate is whatever was set",),
    needed=frozenset({"metadata.request_start_ns", "metrics.input_sequence_length.value"}),
)
