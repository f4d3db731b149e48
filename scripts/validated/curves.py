"""Ten speed-up curves: how much faster speculation is a token, by batch, and why.

`section()` is the text for docs/validation.md, `curves()` its numbers. Needs the extra `silicon`.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from capplan.cli.compose_run import Choice, compose
from capplan.composer.profile import ComposedProfile
from capplan.composer.reading import times_s
from capplan.physics.drafting import speed_up
from capplan.physics.load import decode_load
from capplan.physics.surface import Array
from capplan.planner.surfaces import Surfaces
from capplan.records.profile import Drafter
from compose_shipped import PAIRS, coarse

CONTEXT_TOKENS: Final = 4096
WORKLOAD: Final = "coding"
DRAFTS: Final = 3
NOTABLE: Final = 0.05
"""Part by which a curve must rise or fall for it to be said."""
PARTS: Final = {"sparse": "routed experts", "dense": "dense layers", "shared": "shared experts",
                "all_reduce": "all-reduces", "all_to_all": "all-to-alls",
                "small": "small kernels", "head": "output head"}  # fmt: skip


@dataclass(frozen=True)
class SpeedUpCurve:
    """One deployment's speed-up by batch."""

    label: str
    experts: str
    assumed: bool
    """Whether its acceptance is assumed."""
    tokens_per_round: float
    """At three drafts."""
    batches: Array
    at_three: Array
    """With three drafts; NaN outside the tables."""
    best: Array
    """With the best number of drafts."""
    drafts: Array
    """That number; 0 where not speculating is best."""
    growth: dict[str, Array]
    """What verifying three drafts takes longer than decoding, by part, over decoding."""
    drafting: Array
    """Drafting of three drafts over decoding."""

    @property
    def rise(self) -> tuple[int, int] | None:
        """Places between which the curve rises most, from the lower; None where it never does."""
        best = self.best[: self.end + 1]
        rises = np.triu(best[None, :] / best[:, None])
        low, high = np.unravel_index(int(np.argmax(rises)), rises.shape)
        return (int(low), int(high)) if rises[low, high] > 1 + NOTABLE else None

    @property
    def end(self) -> int:
        """The last batch at which verifying three drafts is in the tables."""
        return int(np.flatnonzero(np.isfinite(self.at_three))[-1])

    @property
    def places(self) -> tuple[int | None, ...]:
        """Batch one, the lowest point before the rise, the peak, the end."""
        return (0, *(self.rise or (None, None)), self.end)

    @property
    def shape(self) -> str:
        """How the curve runs, in words."""
        if self.rise is None:
            return "best at batch one, falls"
        low, high = self.rise
        if self.best[high] < (1 + NOTABLE) * self.best[0]:
            return "best at batch one, dips and recovers in part"
        start = "dips, rises" if self.best[low] < (1 - NOTABLE) * self.best[0] else "rises"
        falls = self.best[self.end] < (1 - NOTABLE) * self.best[high]
        return f"{start}, peaks and falls" if falls else f"{start} to the end"


def curves() -> list[SpeedUpCurve]:
    """All pairs that ship a profile."""
    return [_curve(model, choice) for model, choice in PAIRS]


def section(found: list[SpeedUpCurve] | None = None) -> str:
    """The section in Markdown."""
    found = curves() if found is None else found
    shapes = dict.fromkeys(curve.shape for curve in found)
    listed = [
        f"- **{shape}**: {', '.join(curve.label for curve in found if curve.shape == shape)}."
        for shape in shapes
    ]
    return "\n".join([_HEAD, "", *_table(found), "", *listed, "", _WHY, "", *map(_why, found), ""])


def _curve(model: str, choice: Choice) -> SpeedUpCurve:
    found = compose(model, coarse(choice)).composed
    profile = found.profile
    (drafter,) = profile.drafters.values()
    batches = np.array(found.grid.doubled_batches, dtype=float)
    surfaces = Surfaces.of(profile, drafter)
    plain = surfaces.step_s(batches, CONTEXT_TOKENS, 1)
    by_length = np.array([_speed_up(surfaces, drafter, batches, g) for g in range(1, 9)])
    filled = np.where(np.isnan(by_length), -np.inf, by_length)
    best, drafts = filled.max(axis=0), 1 + filled.argmax(axis=0)
    known = np.isfinite(best)
    deployment, acceptance = profile.deployment, drafter.acceptance[WORKLOAD]
    gpus = f"{deployment.gpus_per_replica} x {deployment.gpu.split('-')[0].upper()}"
    return SpeedUpCurve(
        label=f"{profile.model.name} on {gpus}",
        experts=_experts(found),
        assumed=acceptance.origin.kind == "assumed",
        tokens_per_round=1 + sum((acceptance.accepted_share or ())[:DRAFTS]),
        batches=batches,
        at_three=by_length[DRAFTS - 1],
        best=np.where(known, best, np.nan),
        drafts=np.where(known & (best > 1), drafts, 0),
        growth=_growth(found, batches),
        drafting=surfaces.draft_s(batches, DRAFTS) / plain,
    )


def _speed_up(surfaces: Surfaces, drafter: Drafter, batches: Array, drafts: int) -> Array:
    kept = drafter.acceptance[WORKLOAD].accepted_share or ()
    plain = surfaces.step_s(batches, CONTEXT_TOKENS, 1)
    verify = surfaces.step_s(batches, CONTEXT_TOKENS, drafts + 1)
    round_s = verify + surfaces.draft_s(batches, drafts)
    return speed_up(plain, round_s, 1 + sum(kept[:drafts]))


def _growth(found: ComposedProfile, batches: Array) -> dict[str, Array]:
    plain, verify = (decode_load(batches, CONTEXT_TOKENS, q) for q in (1, DRAFTS + 1))
    middle = found.band.middle
    before, after = middle.parts_s(plain), middle.parts_s(verify)
    step_s = times_s(middle, plain)
    return {part: (after[part] - before[part]) / step_s for part in before}


def _experts(found: ComposedProfile) -> str:
    from capplan.composer.band import experts_of

    shape = experts_of(found.band.middle.asked.model)
    return "dense" if shape is None else f"{shape.experts_per_token} of {shape.experts}"


def _table(found: list[SpeedUpCurve]) -> list[str]:
    head = "| model, GPUs | experts | tokens a round | batch 1 | lowest | later peak | end |"
    rule = "|---|---|---|---|---|---|---|"
    return [head, rule, *map(_row, found)]


def _row(curve: SpeedUpCurve) -> str:
    cells = [_point(curve, place) for place in curve.places]
    kept = f"{curve.tokens_per_round:.2f}{' assumed' if curve.assumed else ''}"
    return f"| {' | '.join((curve.label, curve.experts, kept, *cells))} |"


def _point(curve: SpeedUpCurve, place: int | None) -> str:
    if place is None:
        return "–"
    both = f"{curve.at_three[place]:.2f} / {curve.best[place]:.2f}"
    return f"B {curve.batches[place]:.0f}: {both} ({curve.drafts[place]:.0f})"


def _why(curve: SpeedUpCurve) -> str:
    """What makes verification dearer at the places of a curve, largest first."""
    places = dict.fromkeys(place for place in curve.places if place is not None)
    return f"- {curve.label}: {'; '.join(_cost(curve, place) for place in places)}."


def _cost(curve: SpeedUpCurve, place: int) -> str:
    grown = {part: float(more[place]) for part, more in curve.growth.items()}
    largest = sorted(grown, key=lambda part: -grown[part])[:2]
    named = [
        f"{PARTS.get(part, part)} {grown[part]:+.0%}" for part in largest if grown[part] >= 0.01
    ]
    total, drafting = 1 + sum(grown.values()), curve.drafting[place]
    why = f" ({', '.join(named)})" if named else ""
    costs = f"verifying costs {total:.2f} steps{why}, drafting {drafting:.2f}"
    return f"B {curve.batches[place]:.0f}: {costs}"


_HEAD = f"""## Ten speed-up curves

Composed, not measured: plain time a token over speculative time a token at a fixed batch, at
{CONTEXT_TOKENS} tokens of context, on {WORKLOAD}. Each cell holds the batch, the speed-up with {DRAFTS} drafts and
with the best number of drafts (in brackets); the end is where the operator tables end or memory
does. Acceptance is published for the model, or assumed between published curves of others, so that
curves compare in shape rather than in height. The ranges of the profiles are wide: decode steps
alone were compared with served ones.

![Speed-up against batch](figures/validation/curves.svg)"""  # noqa: E501

_WHY = f"""What verifying {DRAFTS} drafts costs at those batches, in decode steps at the same batch, with the two
parts that grow most. A few sequences touch a few experts, and verification touches more of them: the
dip. Once decoding touches them all, verification reads nothing more: the rise. Past the tiles of the
kernels, arithmetic and messages grow with every token: the fall. A dense model has only the fall.
Where every verified token chooses what it reads of the cache (GLM-5), attention grows with each draft;
on 8 B200 part of the dip is a jump in the table of all-reduces."""  # noqa: E501
