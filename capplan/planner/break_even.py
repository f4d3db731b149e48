"""What drafts would have to bring, batch by batch, to be worth verifying."""

import numpy as np

from capplan.physics import acceptance, drafting
from capplan.physics.surface import Array
from capplan.planner.capacity import Curve
from capplan.records.service import BreakEven


def break_even(curve: Curve, mix: int | None = None) -> tuple[BreakEven, ...]:
    """Tokens a round, and the acceptance that brings them, below which plain decoding is faster.

    Batch and context are held: what speculation does to the batch is in the plan's capacities.
    Where classes go without drafts, the tokens are those of a request that drafts beside them.

    Args:
        curve: The replica under its policy.
        mix: The mix of classes whose mean context is read; None for the busiest interval's.

    Returns:
        For each draft length that runs, or each that was measured where none does, every measured
        batch in turn. Empty for a replica without a drafter.
    """
    replica = curve.replica
    asked = replica.load.busiest_mix() if mix is None else mix
    running = set(curve.draft_lengths) - {0}
    known = [length for length in replica.variants.draft_tokens if length > 0]
    measured = replica.surfaces.step.axes[0]
    batch = measured[measured <= curve.ranges[-1].to_batch]
    return tuple(
        found
        for length in known
        if length in running or not running
        for found in _at_length(curve, asked, batch, length)
    )


def _at_length(curve: Curve, mix: int, batch: Array, draft_tokens: int) -> list[BreakEven]:
    """One draft length at each batch for which its steps and its drafting were measured."""
    replica, surfaces = curve.replica, curve.replica.surfaces
    here = mix, replica.variants.index(draft_tokens)
    context = replica.context_tokens[here]
    decode_s = surfaces.step_s(batch, context, 1)
    verify_s = surfaces.step_s(batch, context, replica.query_tokens[here])
    draft_s = surfaces.draft_s(batch, draft_tokens, replica.drafting[here])
    round_s = drafting.round_s(verify_s, draft_s)
    tokens = drafting.break_even_tokens_per_round(decode_s, round_s)
    chances = acceptance.constant_chance(tokens, draft_tokens)
    return [
        BreakEven(
            batch=int(sequences),
            draft_tokens=draft_tokens,
            tokens_per_round=float(least),
            acceptance=float(chance) if np.isfinite(chance) else None,
        )
        for sequences, least, chance in zip(batch, tokens, chances, strict=True)
        if np.isfinite(least)
    ]
