"""Mooncake: traces of Kimi with hashes of the prompts' blocks.

Source: https://github.com/kvcache-ai/Mooncake, FAST25 release, Apache-2.0. Milliseconds since a
start that is not told; `hash_ids` stand for blocks of 512 tokens with all that goes before them.
"""

from capplan.importers.traces.layout import Layout

LAYOUT = Layout(
    "Mooncake trace",
    {
        "arrival": "timestamp",
        "prompt": "input_length",
        "output": "output_length",
        "prefix": "hash_ids",
    },
    unit="ms",
    block_tokens=512,
    needed=frozenset({"timestamp", "input_length", "output_length", "hash_ids"}),
)
