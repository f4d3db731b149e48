"""The tables of docs/method.md, written between their marks from the figures' numbers."""

import re
from collections.abc import Callable, Iterable

from plotted import Tree
from plotted.fleet import best_length, ratio

MODELS = {"moe": "MoE", "dense": "dense"}
NONE = "–"
SHOWN_LOADS = (0.5, 0.85)
SHOWN_LENGTH = 3


def with_tables(text: str, tree: Tree) -> str:
    """The document with each table replaced by one of these numbers.

    A table stands between `<!-- name -->` and `<!-- end name -->`.
    """
    for name, table in TABLES.items():
        block = f"<!-- {name} -->\n\n{table(tree)}\n\n<!-- end {name} -->"
        pattern = f"<!-- {name} -->.*?<!-- end {name} -->"
        text, found = re.subn(pattern, lambda _, block=block: block, text, flags=re.DOTALL)
        assert found == 1, f"the document has no place for the table {name}"
    return text


def _fleet(tree: Tree) -> str:
    head = ["TPOT p99", *(f"{MODELS[case['model']]} {case['workload']}" for case in tree["fleet"])]
    rows = [
        [_ms(row[0]["tpot_p99_s"]), *(_ratios(one["capacity_per_s"]) for one in row)]
        for row in zip(*(case["objectives"] for case in tree["fleet"]), strict=True)
    ]
    return _table(head, rows)


def _ratios(capacity_per_s: dict[str, float]) -> str:
    if capacity_per_s["plain"] == 0:
        return NONE
    best = best_length(capacity_per_s).removeprefix("always:")
    shown = [ratio(capacity_per_s, policy) for policy in ("always:1", "always:3", "best")]
    one, three, most = (f"{value:.2f}" for value in shown)
    return f"{one} / {three} / {most} ({best}) / {ratio(capacity_per_s, 'by-load'):.2f}"


def _equilibrium(tree: Tree) -> str:
    head = ["", "load", "batch", "fixed batch", "**equilibrium**", "by balance", "first order"]
    rows = [
        [
            f"{MODELS[row['model']]} {row['workload']}",
            f"{row['load']:.2f}",
            f"{row['plain_batch']:.0f} → {row['batch']:.0f}",
            f"{row['at_fixed_batch']:.2f}",
            f"**{row['at_equilibrium']:.2f}**",
            f"{row['at_equilibrium_by_balance']:.2f}",
            f"{row['first_order']:.2f}" if "first_order" in row else NONE,
        ]
        for row in tree["equilibrium"]
        if row["draft_tokens"] == SHOWN_LENGTH and row["load"] in SHOWN_LOADS
    ]
    return _table(head, rows)


def _spread(tree: Tree) -> str:
    head, lines = ["sd"], []
    for case in tree["spread"]:
        lengths = case["deviations"][0]["capacity_per_s"]
        head += [f"{case['workload']}, γ = {name.removeprefix('always:')}" for name in lengths]
    for row in zip(*(case["deviations"] for case in tree["spread"]), strict=True):
        cells = [cell for one in row for cell in _rates(one["capacity_per_s"])]
        lines.append([f"{row[0]['per_request_sd']:.2f}", *cells])
    return _table(head, lines)


def _rates(capacity_per_s: dict[str, float]) -> list[str]:
    """Rates, the highest in bold."""
    best = max(capacity_per_s.values())
    return [
        f"**{rate:.2f}**" if rate == best else f"{rate:.2f}" for rate in capacity_per_s.values()
    ]


def _efficiency(tree: Tree) -> str:
    batches = tree["efficiency"][0]["batch"]
    rows = [
        [f"{MODELS[one['model']]}, γ = {length}", *(f"{value:.2f}" for value in values)]
        for one in tree["efficiency"]
        for length, values in one["by_draft_length"].items()
    ]
    return _table(["batch", *map(str, batches)], rows)


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:g} ms"


def _table(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


TABLES: dict[str, Callable[[Tree], str]] = {
    "fleet": _fleet,
    "equilibrium": _equilibrium,
    "spread": _spread,
    "efficiency": _efficiency,
}
