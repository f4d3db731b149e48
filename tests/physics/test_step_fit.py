"""The step fit: against times made by hand, real refits, and tables that hold what cannot be."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capplan.files.catalogue import find
from capplan.files.reader import read
from capplan.files.writer import write_record
from capplan.physics.doubtful import falling, faster_than_decoding, impossible_steps
from capplan.physics.experts import Routing, distinct_experts
from capplan.physics.fitted_steps import fitted_steps
from capplan.physics.step_fit import TERMS, StepRows, edge_errors, fit_steps
from capplan.records.profile import Profile

ROUTING = Routing(128, 8, across=0.118, within=0.34)
TRUE_S = np.array([8e-3, 9.5e-3, 50e-6, 4e-6, 30e-6, 2e-9, 4e-10])
TILE_TOKENS = 128


def rows(noise: float = 0.0, seed: int = 0) -> StepRows:
    batch, context, query = (
        axis.ravel().astype(float)
        for axis in np.meshgrid([1, 4, 16, 64, 256], [1024, 8192, 32768], [1, 2, 4, 8])
    )
    distinct = np.asarray(distinct_experts(ROUTING, batch, query.astype(int)))
    places = StepRows(batch, context, query, distinct, np.ones_like(batch))
    scatter = 1 + noise * np.random.default_rng(seed).standard_normal(len(batch))
    return StepRows(batch, context, query, distinct, places.terms(TILE_TOKENS) @ TRUE_S * scatter)


def test_times_that_follow_the_law_give_its_coefficients_back() -> None:
    fit = fit_steps(rows())
    assert fit.tile_tokens == TILE_TOKENS
    np.testing.assert_allclose(fit.coefficients_s, TRUE_S, rtol=1e-6)
    np.testing.assert_allclose(fit.at(rows()), rows().step_s, rtol=1e-9)


def test_decoding_and_verification_keep_constants_of_their_own() -> None:
    fit = fit_steps(rows())
    assert fit.coefficients_s[1] - fit.coefficients_s[0] == pytest.approx(1.5e-3, rel=1e-6)


def test_left_out_errors_are_those_of_fits_without_the_row() -> None:
    noisy = rows(noise=0.03)
    fit = fit_steps(noisy)
    for row in range(0, len(noisy.step_s), 7):
        others = np.arange(len(noisy.step_s)) != row
        alone = fit_steps(noisy.of(others))
        if alone.tile_tokens != fit.tile_tokens:
            continue
        left = noisy.of(~others)
        assert fit.left_out[row] == pytest.approx(
            float(alone.at(left)[0] / left.step_s[0] - 1), abs=2e-3
        )


def test_covariance_is_how_far_coefficients_scatter_over_repeated_measurements() -> None:
    fits = [fit_steps(rows(noise=0.01, seed=seed)) for seed in range(200)]
    scatter = np.std([fit.coefficients_s[0] for fit in fits])
    claimed = np.median([np.sqrt(fit.covariance[0, 0]) for fit in fits])
    assert claimed == pytest.approx(scatter, rel=0.25)


def test_the_edge_errors_of_a_true_law_are_nought_and_of_a_false_one_are_not() -> None:
    assert max(edge_errors(rows()).values()) < 1e-6
    true = rows()
    bent = StepRows(
        true.batch,
        true.context_tokens,
        true.query_tokens,
        true.distinct_experts,
        true.step_s * np.where(true.batch == 256, 2.0, 1.0),
    )
    assert edge_errors(bent)["batch"] == pytest.approx(0.5, abs=0.05)


@settings(deadline=None)
@given(st.floats(0, 0.3), st.integers(0, 50))
def test_no_coefficient_undercuts_its_bound(noise: float, seed: int) -> None:
    least = np.array([7e-3, 7e-3, 60e-6, 0, 0, 0, 0])
    assert (fit_steps(rows(noise, seed), least).coefficients_s >= least).all()


def test_a_row_that_alone_decides_a_coefficient_has_no_left_out_error() -> None:
    every = rows(noise=0.02)
    lone = every.of((every.query_tokens == 1) | (np.arange(len(every.step_s)) == 1))
    assert lone.query_tokens.tolist().count(1) == len(lone.step_s) - 1
    fit = fit_steps(lone)
    assert np.isnan(fit.left_out[lone.query_tokens > 1]).all()
    assert np.isfinite(fit.left_out[lone.query_tokens == 1]).all()


def test_too_few_steps_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 7 steps, found 7"):
        fit_steps(rows().of(np.arange(7)))


def test_steps_that_cannot_be_are_found_and_noise_is_not() -> None:
    places = np.array(
        [(1, 1, 1), (1, 1, 2), (2, 1, 1), (2, 1, 2), (4, 1, 1), (4, 9, 1)], dtype=float
    )
    step_s = np.array([1.0, 0.8, 0.99, 1.2, 1.5, 1.1])
    exact = faster_than_decoding(places, step_s, step_s)
    assert exact.tolist() == [False, True, False, False, False, False]
    assert falling(places, step_s, step_s, 0).tolist() == [False, False, True] + [False] * 3
    assert falling(places, step_s, step_s, 1).tolist() == [False] * 5 + [True]
    low_s, high_s = step_s * 0.97, step_s * 1.03
    assert not falling(places, low_s, high_s, 0).any()
    assert faster_than_decoding(places, low_s, high_s).any()


def test_a_shipped_profile_is_fitted_kept_and_read_back(tmp_path) -> None:
    profile = read(find("profiles", "h200-sxm/kimi-k2.5-int4-tp8"), Profile)
    fit = fitted_steps(profile.steps.rows)
    assert fit is not None
    assert fit.left_out_error < 0.03
    # The context's slope is what the composition put in: 61 layers' attention reading the cache.
    assert fit.coefficients_s["kv_token"] == pytest.approx(1.5e-8, rel=0.2)
    assert set(fit.coefficients_s) == set(TERMS)
    assert set(fit.edge_error) == {"batch", "context_tokens", "query_tokens"}
    file = tmp_path / "fitted.yaml"
    write_record(file, profile.model_copy(update={"fit": fit}))
    kept = read(file, Profile).fit
    assert kept is not None
    # Files keep five digits.
    assert kept.coefficients_s == pytest.approx(fit.coefficients_s, rel=1e-4)
    np.testing.assert_allclose(kept.covariance_s2, fit.covariance_s2, rtol=1e-4)


def test_a_table_of_real_kernels_holds_steps_that_cannot_be() -> None:
    profile = read(find("profiles", "h200-sxm/llama-3.1-70b-fp8-tp4"), Profile)
    found = impossible_steps(profile.steps.rows)
    cells = {(c.batch, c.context_tokens, c.query_tokens): c.step_s for c in profile.steps.rows}
    faster = sum(
        step_s < cells[batch, context, 1]
        for (batch, context, query), step_s in cells.items()
        if query > 1 and (batch, context, 1) in cells
    )
    assert found["verify faster than decoding at the same batch"] == faster > 0
