"""The tables are full rectangles, and hold what a plan asks of them."""

import pytest

from capplan.profiler.grid import Grid, Work, chunks, default_grid

GRIDS = [(kind, quick) for kind in ("cuda", "cpu") for quick in (False, True)]


@pytest.mark.parametrize(("kind", "quick"), GRIDS)
def test_every_table_is_a_full_rectangle(kind: str, quick: bool) -> None:
    grid = default_grid(kind, quick=quick)  # type: ignore[arg-type]
    works = grid.works()
    assert len(set(works)) == len(works)
    for table in ("steps", "mixed", "prefill"):
        axes = [
            (w.batch, w.context_tokens, w.query_tokens, w.prefill_tokens, w.cached_tokens)
            for w in works
            if w.table == table
        ]
        size = 1
        for axis in zip(*axes, strict=True):
            size *= len(set(axis))
        assert len(axes) == size


@pytest.mark.parametrize(("kind", "quick"), GRIDS)
def test_plain_decoding_single_sequences_and_whole_batches_are_in_it(
    kind: str, quick: bool
) -> None:
    grid = default_grid(kind, quick=quick)  # type: ignore[arg-type]
    works = grid.works()
    steps = [work for work in works if work.table == "steps"]
    mixed = [work for work in works if work.table == "mixed"]
    most = max(work.batch for work in steps)
    assert {work.query_tokens for work in steps} == set(range(1, grid.draft_tokens + 2))
    assert {1, grid.draft_tokens + 1} == {work.query_tokens for work in mixed}
    assert {1, most} <= {work.batch for work in mixed}
    assert len({work.batch for work in steps}) >= 3
    assert len({work.context_tokens for work in steps}) >= 2
    assert len({work.prefill_tokens for work in mixed}) >= 3
    assert 0 in {work.cached_tokens for work in works if work.table == "prefill"}


def test_chunks_end_with_the_largest() -> None:
    assert chunks(8192, quick=False) == (512, 1024, 2048, 4096, 8192)
    assert chunks(8192, quick=True) == (1024, 4096, 8192)
    assert chunks(3, quick=False) == (1, 3)


def test_no_drafts_means_decoding_only() -> None:
    grid = Grid((1,), (8,), 0, (4,), (1,))
    assert [work.query_tokens for work in grid.works() if work.batch] == [1, 1]


def test_tokens_and_caches_are_counted() -> None:
    mixed = Work(3, 10, 2, prefill_tokens=5, cached_tokens=0)
    assert mixed.tokens == 11
    assert mixed.head_rows == 7
    assert mixed.cache_tokens == 30
    assert Work(0, 0, 0, 5, 40).cache_tokens == 40
    assert [part.tokens for part in mixed.parts] == [2, 5]
