"""Tokens per round by draft length, as others published them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PublishedCurve:
    """One drafter on one workload."""

    name: str
    drafter: str
    gpu: str
    engine: str
    tokens_per_round: tuple[float, ...]
    """At 1, 2, … drafts, bonus token included."""
    at_once: bool
    """Whether all drafts are proposed in one go."""
