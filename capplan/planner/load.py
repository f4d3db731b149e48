"""What arrives at a replica, as arrays: lengths by class, and the mixes of classes over time."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from capplan.physics import lengths, memory
from capplan.physics.surface import Array
from capplan.planner.handover import Handover
from capplan.records.plan import Demand

_SAME_MIX = 3
"""Decimals of a share: mixes closer than a thousandth are planned as one."""


@dataclass(frozen=True)
class Load:
    """Requests by class, and the distinct mixes in which they come.

    Attributes:
        names: Of the classes.
        prefill_tokens: Prompt tokens that are not cached, at each quantile. [classes, nodes]
        cached_tokens: Prompt tokens that are. [classes, nodes]
        decode_tokens: Output tokens after the first, mean. [classes]
        typical_decode_tokens: Harmonic mean of the same: the chance in short answers weighs most.
            [classes]
        output_tokens: Mean. [classes]
        resident_tokens: Mean context of a decoding sequence. [classes]
        resident_variance: Of the same. [classes]
        shares: Part of each class in each mix. [mixes, classes]
        mix_of_interval: Which mix an interval has. [intervals]
        rate_per_s: All classes together. [intervals]
        handover: Where prompts are processed, if on other engines.
        prefilled_s: What they take there, at each quantile; nought if the replica processes them
            itself. [classes, nodes]
        transfer_s: What their contexts then take to arrive. Same.
    """

    names: tuple[str, ...]
    prefill_tokens: Array
    cached_tokens: Array
    decode_tokens: Array
    typical_decode_tokens: Array
    output_tokens: Array
    resident_tokens: Array
    resident_variance: Array
    shares: Array
    mix_of_interval: NDArray[np.intp]
    rate_per_s: Array
    handover: Handover | None
    prefilled_s: Array
    transfer_s: Array

    @classmethod
    def of(cls, demand: Demand, handover: Handover | None = None) -> Self:
        """Arrays of a demand. An interval without traffic takes the mix of the whole.

        Args:
            demand: The requests.
            handover: Where prompts are processed; None for replicas that do it themselves. Else
                they still run the last token of each, as vLLM's connectors have it.
        """
        rates = np.array([traffic.rate_per_s for traffic in demand.classes])
        prompt = np.maximum([traffic.prompt_tokens for traffic in demand.classes], 1.0)
        output = np.array([traffic.output_tokens for traffic in demand.classes])
        reuse = np.array([[traffic.prefix_reuse] for traffic in demand.classes])
        # A prompt that is cached whole still has its last token processed.
        fresh = np.maximum(prompt * (1 - reuse), 1.0)
        prefilled, transfer = np.zeros_like(fresh), np.zeros_like(fresh)
        if handover is not None:
            prefilled = handover.prefill_s(fresh, prompt - fresh)
            transfer = handover.transfer_s(prompt)
            fresh = np.ones_like(fresh)
        decode = np.maximum(output - 1, 0.0)
        residents = [
            memory.resident(p, d, lengths.WEIGHTS) for p, d in zip(prompt, decode, strict=True)
        ]
        total = rates.sum(axis=0)
        whole = rates.sum(axis=1, keepdims=True) / total.sum()
        shares = np.where(total > 0, rates / np.where(total > 0, total, 1.0), whole)
        mixes, mix_of_interval = np.unique(_rounded(shares).T, axis=0, return_inverse=True)
        return cls(
            names=tuple(traffic.name for traffic in demand.classes),
            prefill_tokens=fresh,
            cached_tokens=prompt - fresh,
            decode_tokens=decode @ lengths.WEIGHTS,
            typical_decode_tokens=1 / ((1 / np.maximum(decode, 1.0)) @ lengths.WEIGHTS),
            output_tokens=output @ lengths.WEIGHTS,
            resident_tokens=np.array([one.mean_tokens for one in residents]),
            resident_variance=np.array([one.variance for one in residents]),
            shares=mixes / mixes.sum(axis=1, keepdims=True),
            mix_of_interval=mix_of_interval.ravel(),
            rate_per_s=total,
            handover=handover,
            prefilled_s=prefilled,
            transfer_s=transfer,
        )

    def busiest_mix(self) -> int:
        """The mix of the interval with most requests."""
        return int(self.mix_of_interval[np.argmax(self.rate_per_s)])


def _rounded(shares: Array) -> Array:
    """Shares to so many decimals; to one figure where that would lose a class that asks."""
    figure = np.floor(np.log10(np.where(shares > 0, shares, 1.0)))
    unit = 10.0 ** np.minimum(figure, -_SAME_MIX)
    return np.asarray(np.round(shares / unit) * unit)
