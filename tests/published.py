"""NVIDIA's operator tables read row by row, with nothing of capplan's readers."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

MISSING = find_spec("aiconfigurator_core") is None
NEEDED = [
    pytest.mark.silicon,
    pytest.mark.skipif(MISSING, reason="needs the operator tables of aiconfigurator-core"),
]


@cache
def rows(file):
    """Rows of one file, its path from the system on, as dictionaries."""
    import pyarrow.parquet

    folder = Path(find_spec("aiconfigurator_core").origin).parent / "systems" / "data"
    return pyarrow.parquet.read_table(folder / f"{file}_perf.parquet").to_pylist()


def fastest_s(file, **wanted):
    """Least time of the rows that hold these values [s]."""
    kept = [row for row in rows(file) if all(row[key] == value for key, value in wanted.items())]
    return min(row["latency"] for row in kept) * 1e-3
