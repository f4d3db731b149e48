"""How many prefill engines a pool needs, by the balance and the M/G/k tail: nothing simulated."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from capplan.physics import latency, lengths
from capplan.physics.servers import PoolWait
from capplan.physics.surface import Array
from capplan.planner import latencies
from capplan.planner.capacity import Curve
from capplan.planner.dedicated import Which, Work, first_tokens, handover_of, in_vain, smallest
from capplan.planner.operating_point import batch_at
from capplan.records.fleet import Rules
from capplan.records.plan import Demand, PrefillPool

_STEPS = 1000
"""Values that stand for the time before a decode replica has a request."""


def screened_prefill_pool(
    curve: Curve, demand: Demand, mix: int, own_per_s: float, all_per_s: float, rules: Rules
) -> PrefillPool:
    """The smallest pool that keeps every objective on the time to first token.

    Args:
        curve: A decode replica behind prefill engines, under its policy.
        demand: Its classes.
        mix: The mix that decides.
        own_per_s: Of one decode replica where it is planned for, within its capacity. [1/s]
        all_per_s: Of all decode replicas at the peak. [1/s]
        rules: Headroom on the latter, spares, minimum.

    Raises:
        InfeasibleError: Not even where no prompt waits are the objectives kept.
    """
    load, shares = curve.replica.load, curve.replica.load.shares[mix]
    batch = float(batch_at(curve, mix, own_per_s))
    # NaN stands for what was not measured and inf for waits without end: both are meant.
    with np.errstate(all="ignore"):
        limits = [
            _Limit.of(curve, mix, batch, (place, objective), limit_s)
            for place, objective, limit_s in first_tokens(demand)
            if shares[place] > 0
        ]
    lost = [limit.which for limit in limits if not limit.kept(PoolWait(0.0, 0.0))]
    if lost:
        raise in_vain(demand, lost)
    mean_s, square_s2, transfer_s = (
        float(shares @ (values @ lengths.WEIGHTS))
        for values in (load.prefilled_s, load.prefilled_s**2, load.transfer_s)
    )
    work = Work(handover_of(curve), all_per_s, mean_s, transfer_s)

    def keeps(servers: int) -> bool:
        wait = PoolWait.of(servers, work.planned_per_s(rules), mean_s, square_s2)
        return all(limit.kept(wait) for limit in limits)

    return work.pool(smallest(keeps, work.fewest(rules)), rules)


@dataclass(frozen=True)
class _Limit:
    """An objective on the time to first token, and what that is made of but for the wait.

    Attributes:
        which: The class and the objective.
        probability: Of the percentile.
        limit_s: What it may be.
        before_s: Prefill and transfer at equal steps of probability. [nodes]
        means_s: Of what the decode replica adds.
        tails_s: Percentiles of the same.
    """

    which: Which
    probability: float
    limit_s: float
    before_s: Array
    means_s: list[Array]
    tails_s: list[Array]

    @classmethod
    def of(cls, curve: Curve, mix: int, batch: float, which: Which, limit_s: float) -> Self:
        """Read from a curve at a batch."""
        replica, (place, objective) = curve.replica, which
        probability = latencies.PERCENTILES[objective.rsplit("_", 2)[1]]
        # Up to its capacity a curve keeps the objectives at points of its grid, not in between.
        point = max(int(np.searchsorted(replica.batch, batch * (1 + 1e-9), side="right")) - 1, 0)

        def here(parts: list[Array]) -> list[Array]:
            whole = (np.broadcast_to(part, replica.rate_per_s.shape) for part in parts)
            return [np.asarray(curve.follow(part)[mix, point]) for part in whole]

        means, tails = latencies.ttft_parts(replica, place, probability)
        before = _spread(replica.load.prefilled_s[place] + replica.load.transfer_s[place])
        return cls(which, probability, limit_s, before, here(means), here(tails))

    def kept(self, wait: PoolWait) -> bool:
        """Whether it is kept with this wait for a prefill engine."""
        weights = np.full(len(self.before_s), 1 / len(self.before_s))
        mean = np.asarray(wait.mean_s + float(self.before_s.mean()))
        tail = np.asarray(wait.percentile_with_s(self.probability, self.before_s, weights))
        total = latency.combined([mean, *self.means_s], [tail, *self.tails_s])
        return bool(total <= self.limit_s)


def _spread(nodes: Array) -> Array:
    """Values at equal steps of probability, straight between the quantiles at hand."""
    rising = np.argsort(lengths.PROBABILITIES)
    steps = (np.arange(_STEPS) + 0.5) / _STEPS
    return np.asarray(np.interp(steps, lengths.PROBABILITIES[rising], nodes[rising]))
