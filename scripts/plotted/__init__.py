"""What the figures of docs/method.md show: computed by the planner, drawn and tabulated apart."""

from typing import Any

Tree = dict[str, Any]
"""Numbers as they go to JSON."""


def digits(value: float) -> float:
    """Four digits: what a simulation of some ten thousand requests is good for, and one more."""
    return float(f"{value:.4g}")
