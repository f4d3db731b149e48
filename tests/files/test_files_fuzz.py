"""No bytes, however odd, make the reader raise anything but its own complaint."""

from collections.abc import Callable

import pytest
from example_forecast import FORECAST, SERIES
from hypothesis import given
from hypothesis import strategies as st

from capplan.errors import InputError
from capplan.files.reader import read, read_forecast
from capplan.records.profile import StepTable

PIECES = st.sampled_from(
    [
        *("&a ", "*a", "!!str ", "? ", ": ", "- ", "[", "]", "{", "}", "|\n", "'", '"', "\t", "#"),
        *("null", "true", "1e999", ".nan", "-1", "9" * 400, "45ms", "<<", "---\n", "%", "\0", "\n"),
        *("rows", "columns", "step_s: ", "step: ", "{}", "[]", "kind", "itl_p99: ", "\u2028"),
        *("\\ud800", '"\\0"'),
    ]
)
TABLE = "columns: [batch, context_tokens, query_tokens, step]\nrows:\n  - [1, 1000, 1, 10ms]\n"


@st.composite
def mutated(draw: st.DrawFn, text: str) -> bytes:
    """A text with a few pieces put in, cut out or doubled."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        middle = draw(PIECES | st.just("") | st.just(text[start:end] * 2) | st.text(max_size=3))
        text = text[:start] + middle + text[end:]
    return text.encode("utf-8", errors="surrogatepass")


def complains_or_reads(call: Callable[..., object], *arguments: object) -> None:
    complaints = ()
    try:
        call(*arguments)
    except InputError as error:
        complaints = error.complaints or (None,)
    assert all(found is not None and found.place and found.rule for found in complaints)


@given(data=st.binary(max_size=200))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.yaml"
    path.write_bytes(data)
    complains_or_reads(read_forecast, path)


@given(data=mutated(FORECAST))
def test_any_damaged_forecast(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("damaged", numbered=True) / "forecast.yaml"
    path.write_bytes(data)
    path.with_name("rps.csv").write_text(SERIES)
    complains_or_reads(read_forecast, path)


@given(data=mutated(TABLE))
def test_any_damaged_table(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "table.yaml"
    path.write_bytes(data)
    complains_or_reads(read, path, StepTable)


@given(data=mutated(SERIES))
def test_any_damaged_series(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "forecast.yaml"
    path.write_text(FORECAST)
    path.with_name("rps.csv").write_bytes(data)
    complains_or_reads(read_forecast, path)
