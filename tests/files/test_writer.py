import datetime as dt
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from example_forecast import Collect
from hypothesis import given
from hypothesis import strategies as st

from capplan.files.reader import read, read_forecast
from capplan.files.writer import write_record, write_text
from capplan.records.acceptance import Acceptance
from capplan.records.architecture import Architecture, Dense, LayerKind, Mla
from capplan.records.base import Record
from capplan.records.caveat import Origin, Source
from capplan.records.fleet import Fleet, Gpu, Node, Price, Rack, Rules, Site
from capplan.records.forecast import Forecast
from capplan.records.profile import PrefillCell, PrefillTable, StepCell, StepTable

POSITIVE = st.floats(1, 4e5)
SECONDS = st.floats(1e-9, 1e10)
# Without control characters, which the reader refuses.
TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\t"), max_size=30
)
NAMES = st.text("abc-:, #'0.9e", min_size=1, max_size=8)
SMALL = st.floats(1e-9, 1e6)
SOURCES = st.dictionaries(NAMES, TEXT, max_size=2)


def cut(value: object) -> object:
    """Six significant digits, whole numbers kept: what a file keeps of a number."""
    if isinstance(value, dict):
        return {key: cut(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [cut(item) for item in value]
    if isinstance(value, float) and value != int(value):
        return float(f"{value:.6g}")
    return value


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    gpu = draw(NAMES)
    idle, more = draw(POSITIVE), draw(POSITIVE)
    optional = {"fp8_flop_per_s": draw(st.floats(1, 1e24))} if draw(st.booleans()) else {}
    rules = {"rules": Rules(headroom=draw(st.floats(0, 0.95)))} if draw(st.booleans()) else {}
    return Fleet(
        version=1,
        name=draw(TEXT),
        gpus={
            gpu: Gpu(
                memory_bytes=draw(POSITIVE),
                tdp_w=draw(POSITIVE),
                idle_w=idle,
                sources=draw(SOURCES),
                **optional,
            )
        },
        nodes={
            draw(NAMES): Node(
                gpu=gpu,
                gpus=draw(st.integers(1, 72)),
                nameplate_w=draw(POSITIVE),
                other_idle_w=idle,
                other_load_w=idle + more,
                rack_units=8,
                sources=draw(SOURCES),
            )
        },
        rack=Rack(power_w=draw(POSITIVE), units=42, sources={}),
        site=Site(pue=draw(st.floats(1, 3)), energy_usd_per_kwh=draw(SMALL), sources={}),
        prices={
            gpu: Price(
                hold_usd_per_gpu_hour=draw(SMALL), energy_included=True, sources=draw(SOURCES)
            )
        },
        caveats=draw(st.lists(TEXT, max_size=2).map(tuple)),
        **rules,
    )


@st.composite
def step_tables(draw: st.DrawFn) -> StepTable:
    powers = draw(st.booleans())
    rows = []
    for batch in draw(st.sets(st.integers(1, 4096), min_size=1, max_size=4)):
        low, first, second = sorted(draw(st.tuples(SECONDS, SECONDS, SECONDS)))
        power = draw(st.none() | POSITIVE) if powers else None
        rows.append(
            StepCell(
                batch=batch,
                context_tokens=draw(st.integers(0, 1 << 20)),
                query_tokens=draw(st.integers(1, 16)),
                step_s=first,
                low_s=low,
                high_s=second,
                power_w=power,
            )
        )
    return StepTable(rows=tuple(rows))


def assert_same(written: Record, read_back: Record) -> None:
    assert cut(read_back.model_dump()) == cut(written.model_dump())


@given(fleet=fleets())
def test_a_written_fleet_reads_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, fleet: Fleet
) -> None:
    path = tmp_path_factory.getbasetemp() / "fleet.yaml"
    write_record(path, fleet)
    read_back = read(path, Fleet)
    assert_same(fleet, read_back)
    assert read_back.model_fields_set == fleet.model_fields_set


@given(table=step_tables())
def test_a_written_table_reads_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, table: StepTable
) -> None:
    path = tmp_path_factory.getbasetemp() / "table.yaml"
    write_record(path, table)
    assert_same(table, read(path, StepTable))


def test_a_table_is_one_row_a_line_without_empty_columns(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    rows = (
        PrefillCell(tokens=512, cached_tokens=0, step_s=0.0123456789, runs=None),
        PrefillCell(tokens=1024, cached_tokens=0, step_s=1 / 3, power_w=512.0, runs=None),
    )
    write_record(path, PrefillTable(rows=rows))
    assert path.read_text() == (
        "columns: [tokens, cached_tokens, step_s, power_w]\n"
        "rows:\n"
        "  - [512, 0, 0.0123457, null]\n"
        "  - [1024, 0, 0.333333, 512]\n"
    )


def test_only_what_was_set_is_written_in_field_order(tmp_path: Path) -> None:
    path = tmp_path / "o.yaml"
    origin = Origin(
        note="no: comment # here",
        sources=(Source(what="all", where="https://a.b/c"), Source(what="1e-2", where="no")),
        kind="measured",
        date=dt.date(2026, 1, 2),
        machine=None,
        versions={},
    )
    write_record(path, origin)
    assert path.read_text() == (
        "kind: measured\n"
        "date: 2026-01-02\n"
        "versions: {}\n"
        "sources:\n"
        "  - what: all\n"
        '    where: "https://a.b/c"\n'
        '  - what: "1e-2"\n'
        "    where: no\n"
        'note: "no: comment # here"\n'
    )


def test_a_required_none_is_written(tmp_path: Path) -> None:
    path = tmp_path / "m.yaml"
    attention = Mla(
        kind="mla",
        heads=8,
        query_rank=None,
        kv_rank=512,
        nope_head_size=128,
        rope_head_size=64,
        value_head_size=128,
    )
    model = Architecture(
        version=1,
        name="m",
        hidden_size=64,
        vocabulary=100,
        tied_embeddings=False,
        layer_kinds=(
            LayerKind(layers=2, attention=attention, feed_forward=Dense(kind="dense", width=8)),
        ),
        source=Source(what="all", where="here"),
    )
    write_record(path, model)
    assert read(path, Architecture) == model


def test_thirds_that_must_sum_to_one_are_not_cut(tmp_path: Path, forecast: Path) -> None:
    read_in = read_forecast(forecast)
    tree = read_in.model_dump(mode="python", exclude_unset=True)
    one, two = tree["classes"]
    tree["classes"] = (
        {**one, "share": 1 / 3},
        {**two, "share": 1 / 3},
        {**one, "name": "third", "share": 1 / 3},
    )
    thirds = Forecast.model_validate(tree)
    write_record(tmp_path / "f.yaml", thirds)
    assert read(tmp_path / "f.yaml", Forecast) == thirds


def test_counts_of_acceptance_stand_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    write_record(
        path,
        Acceptance(rounds=10, accepted=(8, 5), per_request_sd=0.1, origin=Origin(kind="estimated")),
    )
    assert "accepted: [8, 5]\n" in path.read_text()


def test_the_old_file_stays_when_writing_fails(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    write_text(path, "old\n")
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "new \ud800")
    assert path.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [path]


def test_the_old_file_stays_when_the_disk_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, complaints: Collect
) -> None:
    path = tmp_path / "a.yaml"
    write_text(path, "old\n")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert complaints(write_text, path, "new\n") == [
        "a.yaml: cannot be written: No space left on device"
    ]
    assert path.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_in_the_way_and_a_missing_folder_are_named(
    tmp_path: Path, complaints: Collect
) -> None:
    (tmp_path / "d").mkdir()
    assert complaints(write_text, tmp_path / "d", "x") == ["d: cannot be written: Is a directory"]
    assert complaints(write_text, tmp_path / "no" / "a.yaml", "x") == [
        "no/a.yaml: cannot be written: there is no folder no"
    ]


def test_permissions_and_links_of_the_old_file_are_kept(tmp_path: Path) -> None:
    path, link = tmp_path / "a.yaml", tmp_path / "link.yaml"
    write_text(path, "old\n")
    path.chmod(0o640)
    link.symlink_to(path)
    write_text(link, "new\n")
    assert link.is_symlink()
    assert path.read_text() == "new\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


WRITES = """\
import sys
from pathlib import Path
from capplan.errors import InputError
from capplan.files.writer import write_text
try:
    write_text(Path("/dev/stdout"), "x" * 1_000_000)
except InputError as error:
    print(error, file=sys.stderr)
"""


def test_the_standard_output_may_be_a_pipe() -> None:
    ran = subprocess.run([sys.executable, "-c", WRITES], capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("x" * 1_000_000, "")


def test_a_pipe_that_nobody_reads_any_more_is_named() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    ran = subprocess.run(
        [sys.executable, "-c", WRITES],
        stdout=write_end,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    os.close(write_end)
    assert ran.stderr == "/dev/stdout: cannot be written: the other end of the pipe was closed\n"


def test_a_name_that_is_too_long_is_named(tmp_path: Path, complaints: Collect) -> None:
    long = "x" * 300
    for name in (long, f"{long}/a.yaml"):
        assert complaints(write_text, tmp_path / name, "x") == [
            f"{name}: cannot be written: File name too long"
        ]


def test_devices_are_written_directly() -> None:
    write_text(Path("/dev/null"), "x")
