"""Operator tables made by hand: which rows are found, and which of several counts."""

import numpy as np
import pytest

from capplan.physics.operators import Limits, Silicon, Table, joined
from capplan.records.caveat import Source

SAID = Source(what="made by hand", where="here", licence="CC0")


def table(version, **columns):
    made = {name: np.array(values) for name, values in columns.items()}
    return Table(made, version, SAID.model_copy(update={"where": f"table {version}"}))


NEW = table("2.0", kernel=["a", "b", "a"], m=[1, 1, 4], latency_s=[3e-6, 2e-6, 5e-6])
OLD = table("1.0", kernel=["a", "c", "c"], m=[1, 2, 8], latency_s=[9e-6, 7e-6, 8e-6])
OTHER = table("7.0", kernel=["a", "z"], m=[1, 4], latency_s=[1e-6, 6e-6])


def read(library, operator):
    return {("own", "gemm"): (NEW, OLD), ("other", "gemm"): (OTHER,)}.get((library, operator), ())


SILICON = Silicon("gpu", "own", Limits(1e12, 1e15, 80e9, 8, SAID), ("other", "own"), read)


def test_rows_hold_all_that_is_wanted():
    assert len(NEW.where(kernel="a")) == 2
    assert len(NEW.where(kernel="a", m=4)) == 1
    assert len(NEW.where(kernel="c")) == 0
    assert len(NEW.where(no_column="a")) == 0
    assert NEW.values("m") == [1, 4]


def test_the_fastest_of_several_rows_counts():
    curve = NEW.curve("m", "a product", "all")
    assert curve.sizes == (1.0, 4.0)
    assert curve.times_s == (2e-6, 5e-6)
    assert curve.source.where == "table 2.0: all"


def test_a_grid_has_holes_where_no_row_is():
    uneven = table("1", a=[1, 1, 2], b=[10, 20, 10], latency_s=[1.0, 2.0, 3.0])
    (first, second), times = uneven.grid("a", "b")
    assert first.tolist() == [1, 2]
    assert second.tolist() == [10, 20]
    assert times[0].tolist() == [1, 2]
    assert times[1][0] == 3
    assert np.isnan(times[1][1])


def test_an_older_version_serves_what_the_newest_lacks():
    assert SILICON.find("gemm", kernel="a").version == "2.0"
    assert SILICON.find("gemm", kernel="c").version == "1.0"
    assert SILICON.find("gemm", kernel="z") is None
    assert SILICON.find("gemm", engine="other", kernel="z").version == "7.0"


def test_rows_of_all_engines_stand_together():
    found = SILICON.any_engine("gemm", kernel="a")
    assert found.curve("m", "a product", "a").times_s == (1e-6, 5e-6)
    assert found.source.where == "table 7.0, table 2.0"
    assert SILICON.any_engine("no_operator") is None


def test_joined_tables_keep_the_columns_all_have():
    wider = table("3", kernel=["a"], m=[2], n=[5], latency_s=[1e-6])
    assert set(joined([NEW, wider]).columns) == {"kernel", "m", "latency_s"}


def test_within_is_nan_where_at_refuses():
    curve = NEW.curve("m", "a product", "all")
    assert curve.within([1, 2.5, 4]) == pytest.approx([2e-6, 3.5e-6, 5e-6])
    assert np.isnan(curve.within([0.5, 4.1])).all()
    with pytest.raises(ValueError, match="leave the table"):
        curve.at(4.1)
