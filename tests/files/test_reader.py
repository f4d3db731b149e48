import datetime as dt
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Annotated, Literal

import pytest
from example_forecast import Change, Collect
from pydantic import Field

from capplan.files.durations import seconds
from capplan.files.reader import read, read_forecast
from capplan.records.base import Record
from capplan.records.forecast import Forecast
from capplan.records.profile import DraftTable, StepTable


def test_a_good_forecast_is_read_with_its_series(forecast: Path) -> None:
    read_back = read_forecast(forecast)
    assert read_back.rate.values_per_s == (1.5, 3.0, 20.0)
    assert read_back.rate.series is None
    assert read_back.time.start == dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
    assert read_back.time.step_s == 3600
    assert read_back.classes[0].objectives == {"ttft_p99_s": 2.0, "tpot_p99_s": 0.04}
    assert read_back.classes[1].objectives == {"ttft_p99_s": 5.0, "chunk_gap_p95_s": 0.09}


def test_what_the_file_leaves_to_defaults_stays_known(forecast: Path) -> None:
    read_back = read_forecast(forecast)
    assert read_back.model_fields_set == {"version", "name", "model", "time", "rate", "classes"}
    assert "prefix_reuse" not in read_back.classes[0].model_fields_set
    assert read_back.rate.model_fields_set == {"values_per_s"}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "time: {start: 2026-03-01T00:00:00Z, step: 1h}",
            "time: {start: 2026-03-01T00:00:00Z, step: 3600}",
            [
                (
                    "forecast.yaml:4:37: time.step: needs a unit, found 3600\n"
                    "    write step: 3600s or step_s: 3600"
                )
            ],
        ),
        (
            "ttft_p99: 2s",
            "ttft_p99_s: 45ms",
            [
                (
                    "forecast.yaml:12:18: classes.0.objectives.ttft_p99_s: must be a number of "
                    'seconds, found "45ms"\n    write ttft_p99: 45ms'
                )
            ],
        ),
        (
            "ttft_p99: 2s",
            "ttft_p99_s: 2, ttft_p99: 2s",
            [
                (
                    "forecast.yaml:12:33: classes.0.objectives.ttft_p99: stands beside ttft_p99_s, "
                    'found "2s"\n    remove one of the two'
                )
            ],
        ),
        (
            "tpot_p99: 40ms",
            "tpot_p99: 40 parsecs",
            [
                (
                    "forecast.yaml:12:32: classes.0.objectives.tpot_p99: must be a duration with a "
                    'unit: us, ms, s, min, h or d, found "40 parsecs"\n'
                    "    write for example tpot_p99: 2s"
                )
            ],
        ),
        (
            "tpot_p99: 40ms",
            "tpot_p99: 0ms",
            [
                (
                    "forecast.yaml:12:32: classes.0.objectives.tpot_p99: must be at least 1e-09, "
                    'found "0ms"'
                )
            ],
        ),
        (
            "tpot_p99: 40ms",
            "itl_p99: 40ms",
            [
                (
                    "forecast.yaml:12:32: classes.0.objectives.itl_p99: unknown key\n"
                    "    itl is ambiguous under speculation, where one step emits several tokens: "
                    "use tpot_p99 (per token) or chunk_gap_p99 (between streamed chunks)"
                )
            ],
        ),
        (
            "tpot_p99: 40ms",
            "tptp_p99: 40ms",
            [
                (
                    "forecast.yaml:12:32: classes.0.objectives.tptp_p99: unknown key\n"
                    "    did you mean tpot_p99?"
                )
            ],
        ),
        (
            "model: kimi-k2.5",
            "model: kimi-k2.5\ngrowht: 2",
            ["forecast.yaml:4:1: growht: unknown key\n    did you mean growth?"],
        ),
        (
            "model: kimi-k2.5\n",
            "",
            ["forecast.yaml:1:1: model: is required"],
        ),
        (
            "model: kimi-k2.5",
            "model: 2.5",
            ["forecast.yaml:3:1: model: must be text, found 2.5\n    write it in quotes"],
        ),
        (
            "version: 1",
            "version: 2",
            ["forecast.yaml:1:1: version: must be 1, found 2"],
        ),
        (
            "share: 0.25",
            "share: true",
            [
                (
                    "forecast.yaml:14:5: classes.1.share: must be a number, not true or false, "
                    "found true"
                )
            ],
        ),
        (
            "share: 0.25",
            'share: "0.25"',
            [
                (
                    'forecast.yaml:14:5: classes.1.share: must be a number, found "0.25"\n'
                    "    write it without quotes"
                )
            ],
        ),
        (
            "share: 0.25",
            "share: .nan",
            ["forecast.yaml:14:5: classes.1.share: must be a finite number, found NaN"],
        ),
        (
            "share: 0.25",
            "share: 1.5",
            ["forecast.yaml:14:5: classes.1.share: must be at most 1, found 1.5"],
        ),
        (
            "share: 0.25",
            "share: 0.5",
            ["forecast.yaml:1:1: shares of the classes must sum to 1, they sum to 1.25"],
        ),
        (
            "{mean_tokens: 9000, cv: 0.5, max_tokens: 131072}",
            "{mean_tokens: 9000, max_tokens: 131072}",
            ["forecast.yaml:15:5: classes.1.input_tokens: needs mean_tokens with cv, or quantiles"],
        ),
        (
            "{quantiles: {p50: 400, p99: 3000}, max_tokens: 8192}",
            "[400, 3000]",
            [
                (
                    "forecast.yaml:16:5: classes.1.output_tokens: must be a mapping of keys to "
                    "values, found [400, 3000]"
                )
            ],
        ),
        (
            "{p50: 400, p99: 3000}",
            "{p50: 400}",
            [
                (
                    "forecast.yaml:16:21: classes.1.output_tokens.quantiles: needs at least 2 "
                    'entries, found {"p50": 400}'
                )
            ],
        ),
        (
            "2026-03-01T00:00:00Z",
            "March",
            [
                (
                    "forecast.yaml:4:8: time.start: must be a time such as 2026-03-31T00:00:00Z, "
                    'found "March"'
                )
            ],
        ),
    ],
)
def test_each_mistake_is_one_complaint_at_its_place(
    changed: Change, complaints: Collect, old: str, new: str, expected: list[str]
) -> None:
    assert complaints(read_forecast, changed(old, new)) == expected


def test_all_mistakes_of_a_file_are_said_at_once_in_its_order(
    tmp_path: Path, complaints: Collect
) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(
        "version: 1\n"
        "name: &n x\n"
        "model: m\n"
        "time: {start: 2026-03-01T00:00:00Z, step: 5}\n"
        "7: seven\n"
        "scenarios: {low: -1, high: 2, high: 3}\n"
        "classes: []\n"
    )
    found = complaints(read, path, Forecast)
    assert [text.split(" ")[0] for text in found] == [
        "f.yaml:2:7:",
        "f.yaml:4:37:",
        "f.yaml:5:1:",
        "f.yaml:6:13:",
        "f.yaml:6:31:",
        "f.yaml:7:1:",
    ]


def test_objectives_keep_the_order_of_the_file(changed: Change) -> None:
    path = changed(
        "{ttft_p99: 2s, tpot_p99: 40ms}",
        "{tpot_p99: 40ms, ttft_p50_s: 1, ttft_p99: 2s, chunk_gap_p95: 1s, tpot_p50: 30ms}",
    )
    code = (
        "import sys; from pathlib import Path; from capplan.files.reader import read_forecast\n"
        "print(*read_forecast(Path(sys.argv[1])).classes[0].objectives)"
    )
    command = [sys.executable, "-c", code, str(path)]
    for seed in "0123":
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert ran.stdout == "tpot_p99_s ttft_p50_s ttft_p99_s chunk_gap_p95_s tpot_p50_s\n"


def test_low_and_high_are_no_durations_where_the_record_has_factors(changed: Change) -> None:
    path = changed("model: kimi-k2.5", "model: kimi-k2.5\nscenarios: {low: 0.8, high: 1.3}")
    assert read(path, Forecast).scenarios.low == 0.8


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("45ms", 0.045),
        ("2s", 2.0),
        ("1h", 3600.0),
        ("12 min", 720.0),
        ("1.5 h", 5400.0),
        ("90us", 9e-5),
        ("1d", 86400.0),
        (".5s", 0.5),
        ("-1s", None),
        ("1e3s", None),
        ("1 S", None),
        ("s", None),
        ("", None),
    ],
)
def test_durations_are_the_nearest_float_of_their_seconds(
    text: str, expected: float | None
) -> None:
    assert seconds(text) == expected


TABLE = """\
origin:
  kind: measured
columns: [batch, context_tokens, query_tokens, step, power_w]
rows:
  - [1, 1000, 1, 10ms, 400]
  - [2, 1000, 1, 12ms, null]
"""


class _Steps(Record):
    steps: StepTable


class _Pairs(Record):
    pairs: Annotated[tuple[tuple[int], ...], Field(min_length=1, max_length=2)]


def test_a_compact_table_is_read_and_an_empty_cell_is_absent(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(TABLE)
    first, second = read(path, StepTable).rows
    assert (first.step_s, first.power_w) == (0.01, 400.0)
    assert second.model_fields_set == {"batch", "context_tokens", "query_tokens", "step_s"}


def test_an_unknown_column_is_not_also_a_lack_of_rows(tmp_path: Path, complaints: Collect) -> None:
    path = tmp_path / "t.yaml"
    path.write_text("steps:\n" + textwrap.indent(TABLE.replace("power_w", "watts"), "  "))
    (found,) = complaints(read, path, _Steps)
    assert found.startswith("t.yaml:4:56: steps.columns.4: unknown column watts\n")


@pytest.mark.parametrize(
    ("rows", "rule"),
    [
        ("", "needs at least one entry, found []"),
        ("[1], [2], [3]", "takes at most 2 entries, found [[1], [2], [3]]"),
    ],
)
def test_how_many_entries_is_said_in_good_grammar(
    tmp_path: Path, complaints: Collect, rows: str, rule: str
) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(f"pairs: [{rows}]\n")
    assert complaints(read, path, _Pairs) == [f"p.yaml:1:1: pairs: {rule}"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "[2, 1000, 1, 12ms, null]",
            "[2, 1000, 1, -3, null, 8]",
            [
                (
                    "t.yaml:6:5: rows.1: must have 5 cells, one a column, found 6: "
                    "[2, 1000, 1, -3, null, 8]"
                ),
                (
                    "t.yaml:6:18: rows.1.step: needs a unit, found -3\n"
                    "    write step: -3s or step_s: -3"
                ),
            ],
        ),
        (
            "[2, 1000, 1, 12ms, null]",
            "[0, 1000, x, 12ms, -1]",
            [
                "t.yaml:6:6: rows.1.batch: must be at least 1, found 0",
                't.yaml:6:15: rows.1.query_tokens: must be a whole number, found "x"',
                "t.yaml:6:24: rows.1.power_w: must be at least 0, found -1",
            ],
        ),
        (
            "[2, 1000, 1, 12ms, null]",
            "{batch: 2}",
            ['t.yaml:6:5: rows.1: must be a list of 5 cells, one a column, found {"batch": 2}'],
        ),
        (
            "[2, 1000, 1, 12ms, null]",
            "[null, 1000, 1, 12ms, null]",
            ["t.yaml:6:6: rows.1.batch: is required"],
        ),
        (
            "power_w]",
            "powr_w]",
            ["t.yaml:3:54: columns.4: unknown column powr_w\n    did you mean power_w?"],
        ),
        (
            "[batch, context_tokens",
            "[low, context_tokens",
            [
                "t.yaml:3:1: columns.batch: is required",
                "t.yaml:5:6: rows.0.low: needs a unit, found 1\n    write low: 1s or low_s: 1",
                "t.yaml:6:6: rows.1.low: needs a unit, found 2\n    write low: 2s or low_s: 2",
            ],
        ),
        (
            "[batch, context_tokens",
            "[batch, batch",
            ["t.yaml:3:18: columns.1: column stands twice, found batch"],
        ),
        (
            "[batch, context_tokens",
            "[batch, 7",
            ["t.yaml:3:18: columns.1: a column's name must be text, found 7"],
        ),
        (
            "  - [1, 1000, 1, 10ms, 400]\n  - [2, 1000, 1, 12ms, null]\n",
            "  {}\n",
            ["t.yaml:4:1: rows: must be a list of rows, found {}"],
        ),
        (
            "kind: measured",
            "kind: guessed",
            [
                (
                    "t.yaml:2:3: origin.kind: must be measured, imported, composed, estimated or "
                    'assumed, found "guessed"'
                )
            ],
        ),
    ],
)
def test_mistakes_in_tables_are_said_at_the_cell(
    tmp_path: Path, complaints: Collect, old: str, new: str, expected: list[str]
) -> None:
    assert TABLE.count(old) == 1
    path = tmp_path / "t.yaml"
    path.write_text(TABLE.replace(old, new))
    assert complaints(read, path, StepTable) == expected


def test_a_table_with_a_bad_row_is_not_also_called_too_short(
    tmp_path: Path, complaints: Collect
) -> None:
    path = tmp_path / "t.yaml"
    path.write_text("columns: [batch, draft_tokens, draft]\nrows: [[1, 1, 1]]\n")
    assert len(complaints(read, path, DraftTable)) == 1


class _Round(Record):
    kind: Literal["round"]
    radius: float


class _Square(Record):
    kind: Literal["square"]
    side: float


class _Drawing(Record):
    forms: tuple[Annotated[_Round | _Square, Field(discriminator="kind")], ...]


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("{kind: round, radius: x}", 'd.yaml:1:23: forms.0.radius: must be a number, found "x"'),
        ("{kind: round}", "d.yaml:1:9: forms.0.radius: is required"),
        (
            "{kind: round, radius: 1, sid: 2}",
            "d.yaml:1:34: forms.0.sid: unknown key\n    remove it",
        ),
        ("{kind: oval}", "d.yaml:1:10: forms.0.kind: must be round or square, found"),
        ("{side: 3}", "d.yaml:1:9: forms.0.kind: is required"),
    ],
)
def test_places_inside_unions_are_the_files_own(
    tmp_path: Path, complaints: Collect, form: str, expected: str
) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(f"forms: [{form}]\n")
    (found,) = complaints(read, path, _Drawing)
    assert found.startswith(expected)


def test_reading_starts_without_numpy_scipy_or_torch() -> None:
    code = (
        "import sys, capplan.files.reader, capplan.files.writer, capplan.files.catalogue\n"
        "print({'numpy', 'scipy', 'torch'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "set()\n"
