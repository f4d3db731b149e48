"""Classes that share replicas, carried from a chosen way of serving them to whole replicas."""

from dataclasses import dataclass, replace

import numpy as np

from capplan.errors import InfeasibleError
from capplan.physics.engine import Outcome, Starts
from capplan.physics.surface import Array
from capplan.planner import capacity as capacities
from capplan.planner.calibration import Calibration, corrected
from capplan.planner.candidate import Candidate, same_engine
from capplan.planner.capacity import Curve
from capplan.planner.choices import Choice
from capplan.planner.dedicated import prefill_pool, waiting
from capplan.planner.dedicated_screen import screened_prefill_pool
from capplan.planner.last_rate import Found, settled
from capplan.planner.latencies import Estimates
from capplan.planner.load import Load
from capplan.planner.sizing import sizing, unrounded
from capplan.planner.trial import Stage, Trial
from capplan.records.fleet import Rules
from capplan.records.plan import Demand, PrefillPool, Sizing
from capplan.records.service import Binding

_DOUBT = 0.10
"""Error of the corrected curve from mix to mix that is allowed for until enough are seen."""
_ENOUGH = 3
"""Simulated mixes from which on twice the largest error seen is allowed for instead."""
_ALIKE = 0.02
"""Mixes that differ in fewer of their requests are not simulated apart."""
_MOST = 6
"""Mixes that are simulated, for each pool."""


@dataclass(frozen=True)
class Pool:
    """One pool.

    Attributes:
        candidate: Its replica, over all mixes of the forecast.
        curve: The replica under its policy, by the balance alone.
        capacity_per_s: Highest rate of a replica that keeps every objective. [mixes]
        binding: What stops it, at the mix that decides.
        sized: Replicas over time; None where no number of them keeps the objectives.
        calibration: None where nothing was simulated.
        trials: What was simulated, by mix.
        doubt: Largest error of the corrected curve seen at a mix that was simulated later.
        open_mix: A mix that might still decide once no more are simulated; None where none does.
        prefill: Engines for prompts, where these have engines of their own.
        refused: Why no number of replicas serves it, where the binding does not say.
    """

    candidate: Candidate
    curve: Curve
    capacity_per_s: Array
    binding: Binding
    sized: Sizing | None
    calibration: Calibration | None = None
    trials: dict[int, tuple[Trial, Found]] | None = None
    doubt: float = 0.0
    open_mix: int | None = None
    prefill: PrefillPool | None = None
    refused: str | None = None

    @property
    def load(self) -> Load:
        """What arrives."""
        return self.candidate.replica.load

    @property
    def estimates(self) -> Estimates:
        """Percentiles over mixes and batches, corrected by the simulations."""
        if self.calibration is None:
            return self.candidate.estimates
        return self.calibration.estimates(self.candidate.estimates)

    @property
    def decided_by(self) -> int:
        """The simulated mix that is nearest to the one that decides."""
        assert self.trials is not None
        return _nearest(self.load, self.mix, list(self.trials))

    @property
    def mix(self) -> int:
        """The mix that decides."""
        assert self.sized is not None
        return int(self.load.mix_of_interval[self.sized.peak_interval])


def run(one: Pool, trial: Trial, rate_per_s: float, starts_s: Starts) -> Outcome:
    """A replica at a rate, with what its requests wait for the pool's engines for prompts.

    Args:
        one: The pool, sized.
        trial: Of its replica.
        rate_per_s: At each of the replicas that the peak needs. [1/s]
        starts_s: When services start.
    """
    seen = trial.run(rate_per_s)
    if one.prefill is None:
        return seen
    assert one.sized is not None
    arrival_s = trial.drawn.arrival_s / (rate_per_s * one.sized.replicas_at_peak)
    return waiting(seen, arrival_s, one.prefill.replicas_at_peak, starts_s)


def pool(choice: Choice, demand: Demand, rules: Rules, stage: Stage | None) -> Pool:
    """Sizes a pool.

    Args:
        choice: The way to serve it, found on its busiest intervals.
        demand: Its classes over the whole forecast.
        rules: Headroom, spares, minimum.
        stage: To simulate with; None to go by the balance alone.
    """
    candidate, curve = same_engine(choice.curve, choice.candidate.replica.profile, demand)
    load, minute = candidate.replica.load, demand.peak_minute_over_mean
    if stage is not None:
        return _with_prefill(_simulated(candidate, curve, rules, stage), rules, stage)
    found = capacities.capacity(curve)
    asked = load.mix_of_interval[load.rate_per_s > 0]
    feasible = bool(found.rate_per_s[asked].all())
    needed = unrounded(load, found.rate_per_s, minute, rules)
    mix = int(load.mix_of_interval[int(np.argmax(needed))])
    one = Pool(
        candidate,
        curve,
        found.rate_per_s,
        capacities.binding(curve, mix, int(found.stopped_by[mix])),
        sizing(load, found.rate_per_s, minute, rules) if feasible else None,
    )
    return _with_prefill(one, rules, None)


def _with_prefill(one: Pool, rules: Rules, stage: Stage | None) -> Pool:
    """The engines for its prompts, where these have engines of their own."""
    if one.load.handover is None or one.sized is None:
        return one
    rate = one.sized.peak_rate_per_s
    # Rounded up, replicas never run above their last rate.
    own = rate / (1 - rules.headroom) / one.sized.replicas_at_peak
    try:
        if stage is None or one.trials is None:
            found = screened_prefill_pool(
                one.curve, one.candidate.demand, one.mix, own, rate, rules
            )
        else:
            trial, last = one.trials[one.decided_by]
            decoded = trial.run(min(own, last.rate_per_s))
            found = prefill_pool(trial, decoded, rate, rules, stage.starts_s)
    except InfeasibleError as error:
        return replace(one, sized=None, refused=str(error))
    return replace(one, prefill=found)


def _simulated(candidate: Candidate, curve: Curve, rules: Rules, stage: Stage) -> Pool:
    """Simulates the mix that decides, and every other that might once the curve is corrected."""
    load, minute = candidate.replica.load, candidate.demand.peak_minute_over_mean
    by_mix, doubt = corrected(curve), 0.0
    calibration: Calibration | None = None
    trials: dict[int, tuple[Trial, Found]] = {}
    mix = _next(load, by_mix, minute, rules, trials, calibration, doubt)
    while mix is not None and len(trials) < _MOST:
        near = None if calibration is None else float(by_mix[mix])
        trial, found = trials[mix] = settled(candidate, curve, mix, stage, near)
        if found.rate_per_s == 0:
            return Pool(candidate, curve, by_mix * 0, found.binding, None, None, trials)
        if calibration is None:
            calibration = Calibration.of(trial, found, candidate.estimates)
        else:
            doubt = max(doubt, abs(found.rate_per_s / by_mix[mix] - 1))
            calibration = calibration.and_also(trial, found)
        by_mix = calibration.capacity_per_s(curve)
        mix = _next(load, by_mix, minute, rules, trials, calibration, doubt)
    sized = sizing(load, by_mix, minute, rules)
    decided = int(load.mix_of_interval[sized.peak_interval])
    _, last = trials[_nearest(load, decided, list(trials))]
    return Pool(candidate, curve, by_mix, last.binding, sized, calibration, trials, doubt, mix)


def _next(
    load: Load,
    by_mix: Array,
    minute: float,
    rules: Rules,
    trials: dict[int, tuple[Trial, Found]],
    calibration: Calibration | None,
    doubt: float,
) -> int | None:
    """The mix with the largest need of those that might decide and are not known yet."""
    needed = unrounded(load, by_mix, minute, rules)
    order = np.argsort(-needed, kind="stable")
    if calibration is None:
        return int(load.mix_of_interval[order[0]])
    apart = calibration.distance(load.shares)[load.mix_of_interval] > _ALIKE
    decided = max(needed[~apart], default=0.0)
    allowed = 2 * doubt if len(trials) >= _ENOUGH else max(doubt, _DOUBT)
    might = needed * (1 + allowed) >= decided
    return next((int(load.mix_of_interval[i]) for i in order if apart[i] and might[i]), None)


def _nearest(load: Load, mix: int, others: list[int]) -> int:
    apart = np.abs(load.shares[others] - load.shares[mix]).sum(axis=1)
    return others[int(apart.argmin())]
