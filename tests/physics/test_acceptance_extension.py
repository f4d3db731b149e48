"""Extension beyond the measured positions, on published curves and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from capplan.physics.acceptance import tokens_per_round
from capplan.physics.acceptance_extension import extended_shares, extension_errors

CURVES = {
    # InferenceX golden_al_distribution at commit 843c625 (Apache-2.0), SPEED-Bench coding: mean
    # tokens per round with 1 to 8 drafts; drafters that draft one token after another.
    "dsv4-pro MTP, thinking": [1.79, 2.27, 2.49, 2.54, 2.55, 2.55, 2.54, 2.58],
    "dsv4-pro MTP": [1.92, 2.61, 2.97, 3.0, 3.1, 3.16, 3.0, 3.11],
    "glm-5.2-fp8 MTP, thinking": [1.84, 2.5, 2.99, 3.33, 3.61, 3.78, 3.91, 4.06],
    "qwen3.5-397b MTP, thinking": [1.93, 2.73, 3.39, 3.97, 4.41, 4.8, 5.04, 5.21],
    "qwen3.5-397b MTP": [1.92, 2.7, 3.33, 3.83, 4.2, 4.48, 4.73, 4.71],
    "kimi-k2.5-nvfp4 EAGLE3, thinking": [1.83, 2.43, 2.88, 3.24, 3.46, 3.62, 3.71, 3.77],
    "kimi-k2.5-nvfp4 EAGLE3": [1.8, 2.33, 2.75, 3.06, 3.25, 3.43, 3.46, 3.51],
}
RISING = [0.7568, 0.6011, 0.4976, 0.4113, 0.3538, 0.298, 0.2608, 0.2229]
"""vLLM issue 48892: counters by position of one run, whose conditional rates rise."""


@pytest.mark.parametrize(("shown", "bar"), [(3, 0.03), (4, 0.02), (5, 0.02)])
def test_last_lengths_of_published_curves_follow_from_the_first(shown, bar):
    errors = np.concatenate([extension_errors(curve, shown) for curve in CURVES.values()])
    assert np.median(np.abs(errors)) < bar
    constant = [
        (1 - chance ** (length + 1)) / (1 - chance) / curve[length - 1] - 1
        for curve in CURVES.values()
        for chance in [curve[0] - 1]
        for length in range(shown + 1, 9)
    ]
    assert np.median(np.abs(errors)) < np.median(np.abs(constant)) / 4


@pytest.mark.parametrize("shown", [3, 4, 5])
def test_the_stated_error_holds_in_most_lengths(shown):
    inside = []
    for curve in CURVES.values():
        shares = np.minimum.accumulate(np.diff(curve[:shown], prepend=1.0))
        found = extended_shares(shares, len(curve))
        missed = np.abs(tokens_per_round(found.shares)[1:] / curve - 1)[shown:]
        inside += list(missed <= found.error[shown + 1 :])
    assert np.mean(inside) > 0.8


def test_rates_that_rise_are_not_taken_to_fall():
    found = extended_shares(RISING[:4], 8)
    assert tokens_per_round(found.shares)[8] == pytest.approx(1 + sum(RISING), rel=0.02)


def test_a_constant_rate_goes_on_and_its_error_is_the_least_there_is():
    shares = 0.7 ** np.arange(1, 5)
    found = extended_shares(shares, 7)
    assert found.shares == pytest.approx(0.7 ** np.arange(1, 8))
    assert found.error.tolist() == pytest.approx([0, 0, 0, 0, 0, 0.01, 0.02, 0.03])


@given(hnp.arrays(float, st.integers(3, 6), elements=st.floats(0, 1)), st.integers(0, 8))
def test_extended_shares_are_shares_that_do_not_rise(chances, further):
    shares = np.cumprod(chances)
    found = extended_shares(shares, len(shares) + further)
    assert (np.diff(found.shares) <= 1e-12).all()
    assert (found.shares >= 0).all()
    assert found.shares[: len(shares)] == pytest.approx(shares)


@pytest.mark.parametrize(("known", "wanted"), [(2, 5), (4, 3)])
def test_too_little_is_refused(known, wanted):
    with pytest.raises(ValueError, match="known"):
        extended_shares(0.5 ** np.arange(1, known + 1), wanted)
