"""The journal of a sweep survives whatever stops the run, and refuses what is not its own."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capplan.cli.journal import Journal
from capplan.errors import InputError
from capplan.records.profile import MixedCell, PrefillCell, StepCell

SETTINGS = {"batches": (1, 4), "seed": 0}
CELLS = [
    StepCell(batch=1, context_tokens=8, query_tokens=2, step_s=0.1, runs=1, distinct_experts=3.5),
    MixedCell(batch=1, context_tokens=8, query_tokens=2, prefill_tokens=16, step_s=1 / 3),
    PrefillCell(tokens=16, cached_tokens=0, step_s=2e-9, low_s=1e-9, high_s=3e-9, runs=9),
]


def test_cells_come_back_as_they_were(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "a.jsonl", SETTINGS)
    assert journal.resume() == []
    for cell in CELLS:
        journal.append(cell)
    assert Journal(journal.path, SETTINGS).resume() == CELLS
    journal.close()
    assert not journal.path.exists()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_file_cut_anywhere_gives_whole_cells_and_takes_more(
    tmp_path: Path, data: st.DataObject
) -> None:
    path = tmp_path / "cut.jsonl"
    path.unlink(missing_ok=True)
    journal = Journal(path, SETTINGS)
    journal.resume()
    for cell in CELLS:
        journal.append(cell)
    whole = path.read_bytes()
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    kept = journal.resume()
    assert kept == CELLS[: len(kept)]
    for cell in CELLS[len(kept) :]:
        journal.append(cell)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("place", ["no/a.jsonl", "folder"])
def test_a_place_that_takes_no_file_is_named(tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="cannot be used: "):
        Journal(tmp_path / place, SETTINGS).resume()


def test_a_disk_that_takes_no_more_is_a_complaint_with_a_remedy(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "a.jsonl", SETTINGS)
    journal.resume()
    journal.append(CELLS[0])
    kept = tmp_path / "kept.jsonl"
    journal.path.rename(kept)
    journal.path.symlink_to("/dev/full")
    with pytest.raises(InputError, match=r"No space left on device\n    .*repeat the command"):
        journal.append(CELLS[1])
    assert Journal(kept, SETTINGS).resume() == CELLS[:1]


def test_another_sweep_is_not_continued(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    Journal(path, SETTINGS).resume()
    with pytest.raises(InputError, match=r"a\.jsonl: batches: .*, found \[1, 4\]"):
        Journal(path, {**SETTINGS, "batches": (1, 8)}).resume()
    assert Journal(path, SETTINGS).resume() == []


@pytest.mark.parametrize(
    "text",
    ["hello\n", "[]\n", "3\n", '{"settings": 3}\n', "\xff\n", '{"other": {}}\n'],
)
def test_another_file_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match="not the journal"):
        Journal(path, SETTINGS).resume()
    assert path.read_text(encoding="latin-1") == text


@pytest.mark.parametrize(
    "line", ['{"StepCell": {"batch": 0}}', '{"Nothing": {}}', "{}", '{"StepCell": 3}', "x"]
)
def test_a_spoilt_line_inside_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "a.jsonl"
    journal = Journal(path, SETTINGS)
    journal.resume()
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(InputError, match="not the journal"):
        journal.resume()
