"""The table after a sweep: every figure legible at 80 columns, doubtful ones marked."""

import io

import pytest
from rich.console import Console

from capplan.cli.profile_table import efficiency, tables
from capplan.files.catalogue import find
from capplan.files.reader import read
from capplan.records.profile import Profile, StepCell, StepTable

SHIPPED = read(find("profiles", "h200-sxm/kimi-k2.5-int4-tp8"), Profile)


def step(
    batch: int, query_tokens: int, step_s: float, spread: float | None, experts: float | None = None
) -> StepCell:
    return StepCell(
        batch=batch,
        context_tokens=8192,
        query_tokens=query_tokens,
        step_s=step_s,
        low_s=None if spread is None else step_s * (1 - spread),
        high_s=None if spread is None else step_s * (1 + spread),
        distinct_experts=experts,
    )


def printed(rows: list[StepCell], width: int = 80) -> str:
    profile = SHIPPED.model_copy(update={"steps": StepTable(rows=tuple(rows))})
    console = Console(file=io.StringIO(), width=width)
    for table in tables(profile, width):
        console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [40, 80, 200])
def test_twelve_drafts_of_384_experts_stand_whole_at_any_width(width: int) -> None:
    rows = [
        step(batch, query, 0.9**query, 0.4 if query % 2 else 0.001, experts=384)
        for batch in (1, 100_000)
        for query in range(1, 14)
    ]
    text = printed(rows, width)
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= width
    words = text.replace("┃", " ").replace("│", " ").split()
    for query in range(2, 14):
        assert str(query - 1) in words
        assert sum(word.startswith(f"{0.9 ** (1 - query):.2f}~") for word in words) == 2
    assert sum(word.endswith("/384") for word in words) == 2 * 13


def test_one_table_where_all_fits() -> None:
    text = printed([step(1, query, 1.0, 0.01) for query in range(1, 6)])
    assert text.count("batch") == 1


@pytest.mark.parametrize(
    ("plain", "cell", "shown"),
    [
        (step(1, 1, 1.0, 0.01), step(1, 2, 2.0, 0.01), "0.50"),
        (step(1, 1, 1.0, 0.01), step(1, 2, 2.0, 0.10), "0.50~"),  # 0.99/2.2 to 1.01/1.8
        (step(1, 1, 1.0, 0.0), step(1, 2, 1 / 1.11, 0.0), "1.11!"),
        (step(1, 1, 1.0, 0.2), step(1, 2, 1 / 1.11, 0.0), "1.11~"),
        (step(1, 1, 1.5, 0.1), step(1, 2, 1.0, 0.1), "1.50~!"),  # 1.35/1.1 is above 1 still
        (step(1, 1, 1.0, 0.0), step(1, 2, 2.0, None), "0.50~"),
    ],
)
def test_doubtful_efficiencies_are_marked(plain: StepCell, cell: StepCell, shown: str) -> None:
    assert efficiency(plain, cell) == shown


def test_marks_are_explained_where_they_stand_and_only_there() -> None:
    doubtful = printed([step(1, 1, 1.0, 0.2), step(1, 2, 2.0, 0.2)])
    assert "0.50~" in doubtful
    assert "\n~ uncertain by more than 10%" in doubtful
    assert "\n!" not in doubtful
    assert "~" not in printed([step(1, 1, 1.0, 0.01), step(1, 2, 2.0, 0.01)])


def test_without_drafts_the_table_holds_the_times_of_plain_steps() -> None:
    text = printed([step(1, 1, 0.0423, 0.01), step(4, 1, 1.2, 0.01)])
    assert "no step verified drafts" in text
    assert "42.3 ms" in text
    assert "1.20 s" in text
