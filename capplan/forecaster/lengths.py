"""What is known of the lengths of requests: samples to stored quantiles, and their dependence."""

import math
from typing import get_args

import numpy as np

from capplan.physics import lengths
from capplan.records.forecast import Lengths, Quantile
from capplan.records.trace import Floats, Sample, Seen, Trace

_BEYOND = 5
"""Requests that must lie beyond a quantile for it to be told."""
_STORED: tuple[Quantile, ...] = tuple(
    name for name in get_args(Quantile) if name not in {"p25", "p75"}
)
_MEAN_SLACK = 0.14
"""A mean this far from the one that its quantiles give is left out: the plan would refuse it."""
_LARGEST_SAMPLE = 1_000_000


def of_trace(trace: Trace) -> tuple[Seen, ...]:
    """What each class of a trace looks like."""
    return tuple(_seen(trace, trace.kind == kind) for kind in range(len(trace.kinds)))


def _seen(trace: Trace, own: Floats) -> Seen:
    prompt, output = trace.prompt_tokens[own], trace.output_tokens[own]
    weight = np.ones(len(prompt))
    reuse = None
    if trace.cached_tokens is not None and prompt.sum() > 0:
        reuse = float(trace.cached_tokens[own].sum() / prompt.sum())
    return Seen(
        prompt=Sample(prompt, weight),
        output=Sample(output, weight),
        correlation=rank_correlation(prompt, output),
        prefix_reuse=reuse,
        count=float(len(prompt)),
    )


def rank_correlation(first: Floats, second: Floats) -> float | None:
    """Spearman's, ties at their mean rank; None where one does not vary or there are few."""
    if len(first) < 2 * _BEYOND:
        return None
    ranks = [_ranks(values[:_LARGEST_SAMPLE]) for values in (first, second)]
    spreads = [float(rank.std()) for rank in ranks]
    if min(spreads) == 0:
        return None
    covariance = float(np.mean((ranks[0] - ranks[0].mean()) * (ranks[1] - ranks[1].mean())))
    return max(-1.0, min(1.0, covariance / (spreads[0] * spreads[1])))


def _ranks(values: Floats) -> Floats:
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count - 1) / 2)[place])


def quantile(sample: Sample, probabilities: Floats) -> Floats:
    """Weighted quantiles: the smallest value with that much weight at or below it [tokens]."""
    order = np.argsort(sample.tokens, kind="stable")
    below = np.cumsum(sample.weight[order])
    place = np.searchsorted(below, probabilities * below[-1] * (1 - 1e-12))
    return np.asarray(sample.tokens[order][np.minimum(place, len(order) - 1)])


def described(sample: Sample, count: float) -> Lengths:
    """A distribution by its quantiles, mean and longest.

    Args:
        sample: Values and weights; values below 1 token count as 1.
        count: Requests behind it, which decides how far out a quantile can be told.
    """
    tokens = np.maximum(sample.tokens, 1.0)
    longest = float(tokens.max())
    known = _told(count)
    places = np.array([_place(name) for name in known])
    values = quantile(Sample(tokens, sample.weight), places)
    quantiles = dict(zip(known, values.tolist(), strict=True))
    mean = mean_of(sample)
    longest = max(longest, math.ceil(mean))
    by_place = dict(zip(places.tolist(), values.tolist(), strict=True))
    own_mean = float(lengths.WEIGHTS @ lengths.quantile_nodes(by_place, longest))
    if abs(own_mean / mean - 1) > _MEAN_SLACK:
        return Lengths(quantiles=quantiles, max_tokens=longest)
    return Lengths(mean_tokens=mean, quantiles=quantiles, max_tokens=longest)


def mean_of(sample: Sample) -> float:
    """Mean length, a request of no tokens counted as 1 [tokens]."""
    values = np.maximum(sample.tokens, 1.0)
    return sample.mean_tokens or float(np.average(values, weights=sample.weight))


def _place(name: Quantile) -> float:
    """p05 is 0.05, p995 is 0.995."""
    return float(f"0.{name[1:]}")


def _told(count: float) -> list[Quantile]:
    """Quantiles with enough requests beyond them; the quartiles' neighbours at least."""
    told = [name for name in _STORED if min(_place(name), 1 - _place(name)) * count >= _BEYOND]
    return told if len(told) >= 2 else ["p25", "p50", "p75"]
