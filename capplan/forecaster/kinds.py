"""Which requests are of one class: by a column, by a common prefix, or by their lengths."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from capplan.errors import Complaint, InputError
from capplan.records.trace import Ints, Trace

OTHER = "other"
_SEED = 1
_SAMPLE = 50_000
"""Requests that clusters are found on; all are then assigned."""


@dataclass(frozen=True)
class Rule:
    """How to tell classes apart."""

    by: Literal["column", "one", "prefix", "lengths"] = "column"
    count: int = 1
    """Prefixes that get a class of their own, or clusters."""


def sorted_out(trace: Trace, rule: Rule) -> Trace:
    """The trace with its classes by the rule.

    Raises:
        InputError: The trace has no prefixes, or too few requests for so many clusters.
    """
    if rule.by == "one":
        return replace(trace, kind=np.zeros(len(trace), dtype=np.int64), kinds=("all",))
    if rule.by == "prefix":
        return _by_prefix(trace, rule.count)
    if rule.by == "lengths":
        return _by_lengths(trace, rule.count)
    return trace


def _by_prefix(trace: Trace, count: int) -> Trace:
    """The most common beginnings, and all the rest together."""
    if trace.prefix is None:
        rule = "needs a source that says how prompts begin: hashes, or --map prefix=COLUMN"
        raise InputError([Complaint("--classes", "", rule, f"prefix:{count}")])
    counts = np.bincount(trace.prefix)
    common = np.argsort(-counts, kind="stable")[:count]
    common = common[counts[common] > 1]
    kind: Ints = np.full(len(trace), len(common), dtype=np.int64)
    for place, prefix in enumerate(common.tolist()):
        kind[trace.prefix == prefix] = place
    kinds = (*(f"prefix-{place + 1}" for place in range(len(common))), OTHER)
    return replace(trace, kind=kind, kinds=kinds)


def _by_lengths(trace: Trace, count: int) -> Trace:
    """Clusters of the logarithms of prompt and answer, from short prompts to long.

    k-means with k-means++ seeding (Arthur and Vassilvitskii, SODA 2007), both logarithms scaled to
    a spread of 1.
    """
    from scipy.cluster.vq import kmeans2, vq

    points = np.log(np.maximum(np.stack([trace.prompt_tokens, trace.output_tokens], 1), 1.0))
    spread = points.std(axis=0)
    points = points / np.where(spread > 0, spread, 1.0)
    if len(np.unique(points[:_SAMPLE], axis=0)) < count:
        rule = "needs at least as many different requests as clusters"
        raise InputError([Complaint("--classes", "", rule, f"lengths:{count}")])
    rng = np.random.default_rng(_SEED)
    sample = points[rng.permutation(len(points))[:_SAMPLE]]
    centres, _ = kmeans2(sample, count, minit="++", missing="raise", rng=rng)
    kind = vq(points, centres[np.argsort(centres.sum(axis=1))])[0].astype(np.int64)
    return replace(trace, kind=kind, kinds=tuple(f"lengths-{at + 1}" for at in range(count)))
