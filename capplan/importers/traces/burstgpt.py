"""BurstGPT: ChatGPT and GPT-4 on Azure, as a campus used them.

Source: https://github.com/HPMLL/BurstGPT. Seconds since the collection began, whole in
the first release; later ones have `Session ID` and `Elapsed time` between the other columns. A
failed request has 0 response tokens.
"""

from capplan.importers.traces.layout import Layout

LAYOUT = Layout(
    "BurstGPT",
    {
        "arrival": "Timestamp",
        "prompt": "Request tokens",
        "output": "Response tokens",
        "class": "Model",
    },
    unit="s",
    needed=frozenset({"Timestamp", "Request tokens", "Response tokens", "Model"}),
)
