"""What a reader sees, at the width of a terminal."""

import io

import pytest
from rich.console import Console

from capplan.planner.chain import Asked, plan
from capplan.records.plan import Plan
from capplan.report.content import report
from capplan.report.text import show
from straight import make_fleet, make_forecast, make_profile

PROFILE = make_profile(
    step_s=lambda b, q: (0.010 + 0.0001 * b) * (1 + 0.05 * (q - 1)),
    draft_s=lambda _, g: 0.001 * g,
)


def made(**forecast) -> Plan:
    return plan(make_forecast(**forecast), [PROFILE], make_fleet(), Asked(), "test")


def shown(found: Plan, width: int = 80) -> str:
    stream = io.StringIO()
    show(report(found), Console(file=stream, width=width, color_system=None, highlight=False))
    return stream.getvalue()


def row(text: str, label: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.strip().startswith(label))
    return line.removeprefix(" ").removeprefix(label).split()


@pytest.mark.parametrize("width", [60, 80, 200])
def test_nothing_is_cut_and_nothing_overflows(width):
    text = shown(made(rates=(500.0,)), width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= max(width, 72)


def test_every_row_with_a_dimension_says_its_unit():
    text = shown(made(rates=(500.0,)))
    assert all(unit in ("ms", "s") for unit in row(text, "TPOT mean")[1::2])
    assert all(unit == "kW" for unit in row(text, "IT power, peak")[1::2])
    assert all(cell.startswith("$") for cell in row(text, "$ an hour"))
    assert all(unit == "J" for unit in row(text, "site J / output token")[1::2])


def test_the_decomposition_is_spelled_out():
    found = made(rates=(500.0,))
    text = shown(found)
    for outcome in found.policies:
        assert outcome.pools
        assert outcome.placement is not None
        assert f"{outcome.pools[0].sizing.replicas} x 8 = {outcome.placement.gpus}" in text


def test_a_policy_that_cannot_be_says_why_beside_the_others():
    found = made(objectives={"ttft_p99_s": 10.0, "tpot_p99_s": 0.009})
    text = shown(found)
    assert row(text, "batch (sequences)")[0] == "-"
    assert "plain: one request alone misses tpot_p99 of chat" in text
    assert "none suffices" in text


def test_a_plan_without_watts_leaves_power_open():
    unknown = PROFILE.model_copy(update={"power": None})
    found = plan(make_forecast(), [unknown], make_fleet(), Asked(), "test")
    assert row(shown(found), "IT power, peak") == ["-", "-", "-"]


def test_markup_in_names_is_text():
    asked = make_forecast().model_copy(update={"name": "[red]x[/red]"})
    assert "[red]x[/red]" in shown(plan(asked, [PROFILE], make_fleet(), Asked(), "test"))
