"""How speed-up curves are put in words: shapes drawn by hand, and the text from them."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "scripts"))
from validated.curves import SpeedUpCurve, section  # noqa: E402

BATCHES = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])


def drawn(best: list[float], at_three: list[float] | None = None) -> SpeedUpCurve:
    return SpeedUpCurve(
        label="toy on 1 x H200",
        experts="dense",
        assumed=True,
        tokens_per_round=2.5,
        batches=BATCHES,
        at_three=np.array(at_three or best),
        best=np.array(best),
        drafts=np.full(6, 3.0),
        growth={"sparse": np.full(6, 0.4), "head": np.full(6, 0.001)},
        drafting=np.full(6, 0.1),
    )


@pytest.mark.parametrize(
    ("best", "shape", "places"),
    [
        ([2.0, 1.9, 1.8, 1.7, 1.6, 1.5], "best at batch one, falls", (0, None, None, 5)),
        ([2.0, 1.7, 1.5, 1.9, 2.6, 2.2], "dips, rises, peaks and falls", (0, 2, 4, 5)),
        ([2.0, 1.8, 2.0, 2.2, 2.4, 2.6], "dips, rises to the end", (0, 1, 5, 5)),
        ([1.5, 1.6, 1.8, 2.2, 2.4, 2.0], "rises, peaks and falls", (0, 0, 4, 5)),
        ([2.6, 2.0, 1.6, 1.9, 2.1, 1.7], "best at batch one, dips and recovers in part",
         (0, 2, 4, 5)),
        # Noise below a twentieth is not called a rise.
        ([2.0, 1.9, 1.94, 1.8, 1.84, 1.7], "best at batch one, falls", (0, None, None, 5)),
    ],
)  # fmt: skip
def test_a_curve_is_called_what_it_looks_like(best, shape, places) -> None:
    curve = drawn(best)
    assert curve.shape == shape
    assert curve.places == places


def test_a_curve_ends_where_three_drafts_leave_the_tables() -> None:
    curve = drawn([2.0, 1.9, 1.8, 1.7, 1.6, 1.5], [2.0, 1.9, 1.8, 1.7, np.nan, np.nan])
    assert curve.end == 3
    assert "B 8" in section([curve])
    assert "B 32" not in section([curve])


def test_the_text_names_what_grows_and_leaves_out_what_does_not() -> None:
    text = section([drawn([2.0, 1.7, 1.5, 1.9, 2.6, 2.2])])
    assert "- **dips, rises, peaks and falls**: toy on 1 x H200." in text
    assert "verifying costs 1.40 steps (routed experts +40%), drafting 0.10" in text
    assert "output head" not in text.split("What verifying")[1].split("\n- ")[1]
