"""Azure LLM inference traces of 2023 and 2024, code and conversation.

Source: https://github.com/Azure/AzurePublicDataset, CC-BY. Seven digits of a second; 2023 without
a zone and about one hour long, 2024 with +00:00 and a week long.
"""

from capplan.importers.traces.layout import Layout

_COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")

LAYOUT = Layout(
    "Azure LLM inference trace",
    {"arrival": _COLUMNS[0], "prompt": _COLUMNS[1], "output": _COLUMNS[2]},
    needed=frozenset(_COLUMNS),
)
