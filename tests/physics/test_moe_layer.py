"""The layer fit: against times made by hand, and against published tables."""

from importlib.resources import files

import numpy as np
import pytest

from capplan.physics.moe_layer import MoeRows, Routed, fit_moe_layer, moe_layer_errors
from capplan.physics.synthetic_routing import routed_counts
from silicon import needs_silicon

SIZES = np.array(
    [1, 2, 4, 8, 16, 32, 48, 64, 80, 96, 128, 160, 192, 256, 320, 384, 512, 768, 1024, 1536, 4096]
)
"""Those of the published tables."""


def made(ranks, routing, time_of):
    """Rows whose times a rule makes of the counts."""
    counts = [routed_counts(routing, int(n), 128, 8, ranks) for n in SIZES]
    times = [time_of(n, drawn) for n, drawn in zip(SIZES, counts, strict=True)]
    shape = np.full(len(SIZES), ranks), np.full(len(SIZES), routing)
    return MoeRows(128, 8, SIZES, *shape, np.array(times))


def joined(*rows):
    parts = ("tokens", "ranks", "distribution", "time_s")
    together = (np.concatenate([getattr(one, part) for one in rows]) for part in parts)
    return MoeRows(128, 8, *together)


def by_tiles(tokens, counts):
    """30 µs, 5 µs an expert, 40 ns a row of whole tiles of 128, 10 ns a token."""
    distinct, rows = (counts > 0).sum(axis=1), (np.ceil(counts / 128) * 128).sum(axis=1)
    return float(30e-6 + 5e-6 * distinct.mean() + 40e-9 * rows.mean() + 10e-9 * tokens)


def test_a_layer_that_follows_the_law_is_predicted_at_routings_and_widths_not_fitted():
    fitted = [made(ranks, "balanced", by_tiles) for ranks in (1, 4, 16)]
    tested = [made(ranks, "power_law_1.2", by_tiles) for ranks in (1, 4, 16)]
    rows, errors = moe_layer_errors(joined(*fitted, *tested))
    assert len(errors) == 3 * len(SIZES)
    assert set(rows.distribution) == {"power_law_1.2"}
    assert np.abs(errors).max() < 1e-6


def test_a_kernel_that_changes_at_a_size_keeps_its_cliff():
    def cliff(tokens, counts):
        return by_tiles(tokens, counts) * (2 if 32 <= tokens < 256 else 1)

    rows = made(1, "balanced", cliff)
    layer = fit_moe_layer(rows, ranks=1)
    routed = [
        Routed.of_counts(n, routed_counts("balanced", int(n), 128, 8)) for n in (16, 32, 128, 256)
    ]
    found = [float(layer.of(one)) for one in routed]
    assert found == pytest.approx([rows.time_s[n == SIZES][0] for n in (16, 32, 128, 256)])


def test_an_expert_is_never_read_faster_than_the_bound():
    layer = fit_moe_layer(made(1, "balanced", by_tiles), ranks=1, least_expert_s=7e-6)
    assert layer.coefficients_s[1] >= 7e-6


def test_fewer_distinct_experts_take_less_time_by_what_an_expert_costs():
    layer = fit_moe_layer(made(1, "balanced", by_tiles), ranks=1)
    saved = layer.at(4, 32) - layer.at(4, 20)
    assert saved == pytest.approx(12 * (5e-6 + 128 * 40e-9), rel=0.01)


def test_totals_alone_stand_for_counts_that_are_spread():
    rng = np.random.default_rng(3)
    for mean in (0.5, 40.0, 900.0):
        counts = rng.poisson(rng.gamma(2.0, mean / 2, (50, 128)))
        known = Routed.of_counts(1.0, counts)
        told = Routed.of_totals(1.0, known.distinct, counts.sum(axis=1).mean())
        assert told.padded_rows == pytest.approx(known.padded_rows, rel=0.06)


def test_sizes_beyond_the_table_and_widths_that_it_lacks_are_refused():
    rows = made(1, "balanced", by_tiles)
    with pytest.raises(ValueError, match="4097 tokens leave the table"):
        fit_moe_layer(rows, ranks=1).at(4097, 128)
    with pytest.raises(ValueError, match="spreads the experts over 8 GPUs"):
        fit_moe_layer(rows, ranks=8)


def published(gpu, engine, version, **wanted):
    import pyarrow.parquet

    table = f"systems/data/{gpu}/moe/{engine}/{version}/moe_perf.parquet"
    rows = pyarrow.parquet.read_table(
        str(files("aiconfigurator_core") / table),
        filters=[(key, "==", value) for key, value in wanted.items()],
    ).to_pydict()
    parts = (rows["num_tokens"], rows["moe_ep_size"], rows["distribution"])
    times = np.array(rows["latency"]) * 1e-3
    layer = wanted["num_experts"], wanted["topk"]
    return MoeRows(*layer, *(np.array(part) for part in parts), times)


@needs_silicon
@pytest.mark.parametrize(
    ("gpu", "engine", "version", "dtype", "shape", "tensor"),
    [
        ("h200_sxm", "vllm", "0.24.0", "bfloat16", (2048, 768, 8, 128), 1),
        ("h100_sxm", "sglang", "0.5.14", "fp8_block", (4096, 1536, 8, 128), 1),
        ("h200_sxm", "trtllm", "1.3.0rc20", "fp8_block", (7168, 2048, 8, 256), 4),
    ],
)
def test_published_layers_are_predicted_at_power_law_routing(
    gpu, engine, version, dtype, shape, tensor
):
    keys = ("hidden_size", "inter_size", "topk", "num_experts")
    wanted = dict(zip(keys, shape, strict=True)) | {"moe_dtype": dtype, "moe_tp_size": tensor}
    _, errors = moe_layer_errors(published(gpu, engine, version, **wanted))
    assert len(errors) > 50
    assert np.median(np.abs(errors)) < 0.06
