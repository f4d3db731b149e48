"""A replica that always has so many requests in flight, as a benchmark or a batch job has."""

from dataclasses import dataclass

import numpy as np

from capplan.errors import Complaint, InputError
from capplan.physics import closed_loop, lengths
from capplan.physics.closed_loop import ByBatch, ClosedLoop
from capplan.physics.engine import Engine, Indices
from capplan.physics.surface import Array
from capplan.planner.capacity import Curve
from capplan.planner.prefill import Prefill
from capplan.planner.rehearsal import engine
from capplan.planner.rounds import variants_that_run
from capplan.records.service import Binding

_STARVED = 0.95
"""Part of the steps' room for prompts that is used, from which on it is what holds requests up."""
_FEWEST_ROUNDS = 1e-3
"""Answers of one token need no round; a thousandth keeps batch and rate tied to one another."""


@dataclass(frozen=True)
class InFlightPoint:
    """A replica with a number of requests in flight; means of the steady state.

    Attributes:
        in_flight: Requests waiting, in prefill or decoding.
        batch: Sequences decoding.
        rate_per_s: Requests finished.
        round_s: From one round of a sequence to its next, the prompts of others included.
        tpot_mean_s: Time per token after the first; nought where answers have one token.
        ttft_mean_s: From coming in to the first token.
        output_tokens_per_s: All requests together.
        limit: What keeps more of them from decoding; None where little does.
    """

    in_flight: int
    batch: float
    rate_per_s: float
    round_s: float
    tpot_mean_s: float
    ttft_mean_s: float
    output_tokens_per_s: float
    limit: Binding | None


def in_flight_point(curve: Curve, mix: int, in_flight: int) -> InFlightPoint:
    """The steady state with so many requests in flight: the law, not a simulation.

    Where the mix is one class of equal prompts and equal answers and nothing is drafted, requests
    march in lockstep as in benchmarks; else they mingle. See `physics.closed_loop`. Preemption is
    not counted.

    Args:
        curve: The replica under its policy.
        mix: Shares of the classes.
        in_flight: At least 1.

    Raises:
        InputError: The batch would lie beyond what was measured, or prompts are processed on
            other engines.
    """
    tables = engine(curve, mix)
    slots, limit = _slots(curve, mix, tables)
    _check(curve, in_flight, tables.max_batch if limit is None else in_flight)
    known = _by_batch(curve, mix, tables, min(in_flight, slots))
    found = _law(curve, mix, known, in_flight)
    load = curve.replica.load
    shares = load.shares[mix]
    after_first = float(shares @ load.decode_tokens)
    decoding_s = found.batch / found.rate_per_s
    return InFlightPoint(
        in_flight=in_flight,
        batch=found.batch,
        rate_per_s=found.rate_per_s,
        round_s=found.round_s,
        tpot_mean_s=decoding_s / after_first if after_first > 0 else 0.0,
        ttft_mean_s=found.ttft_s,
        output_tokens_per_s=found.rate_per_s * float(shares @ load.output_tokens),
        limit=_starved(known, found) or (limit if in_flight > slots else None),
    )


def _starved(known: ByBatch, found: ClosedLoop) -> Binding | None:
    """Whether steps carry about as many prompt tokens as their budget lets in."""
    share = np.interp(found.batch, np.arange(len(known.round_s)), known.prefill_share)
    if found.rate_per_s * found.round_s * share < _STARVED:
        return None
    return Binding(kind="prefill", text="prompts fill what decoding leaves of the token budget")


def _law(curve: Curve, mix: int, known: ByBatch, in_flight: int) -> ClosedLoop:
    load = curve.replica.load
    asked = np.flatnonzero(load.shares[mix] > 0)
    place = asked[0]
    equal = (
        len(asked) == 1
        and all(draft.draft_tokens == 0 for draft in curve.ranges)
        and np.ptp(load.prefill_tokens[place]) == 0
        and np.isclose(load.typical_decode_tokens[place], load.decode_tokens[place])
    )
    law = closed_loop.lockstep if equal else closed_loop.mingled
    return law(known, in_flight)


def _check(curve: Curve, in_flight: int, most: int) -> None:
    """What cannot be answered.

    Raises:
        InputError: See `in_flight_point`.
    """
    place = f"profile {curve.replica.profile.name}"
    if curve.replica.load.handover is not None:
        rule = "a closed loop needs replicas that process prompts themselves"
        raise InputError([Complaint(place, "", rule)])
    if in_flight > most:
        raise InputError(
            [
                Complaint(
                    place=place,
                    key="steps",
                    rule=f"{in_flight} requests in flight decode at a batch that was not measured",
                    found=f"batches up to {most}",
                    remedy="ask for fewer requests in flight, or measure larger batches",
                )
            ]
        )


def _variant(curve: Curve, tables: Engine) -> Indices:
    """Which of the replica's variants runs while 1, 2, … sequences decode. [N]."""
    return np.array(variants_that_run(curve))[tables.variant_by_batch[1:]]


def _slots(curve: Curve, mix: int, tables: Engine) -> tuple[int, Binding | None]:
    """Most sequences that decode at once, and what says so; None where measurement ends first."""
    replica = curve.replica
    batch = np.arange(1, tables.max_batch + 1)
    drafts = replica.query_tokens[mix, _variant(curve, tables)] - 1
    # An engine fills its cache, whatever a plan would call safe, and preempts where that fails.
    fits = batch * _held_tokens(curve, mix, tables) <= tables.cache_tokens
    # The last prompt that the token budget lets in makes one sequence more.
    room = tables.max_batched_tokens - (batch - 1) * (drafts[np.maximum(batch - 2, 0)] + 1) >= 1
    held = np.flatnonzero(~(fits & room))
    if len(held):
        first = int(held[0])
        if not fits[first]:
            return max(first, 1), Binding(kind="memory", text="the batch fills the KV cache")
        text = "decoding leaves nothing of the step's token budget to prompts"
        return first, Binding(kind="prefill", text=text)
    if tables.max_batch < replica.profile.limits.max_batch:
        return tables.max_batch, None
    text = f"the engine runs at most {tables.max_batch} sequences"
    return tables.max_batch, Binding(kind="engine limit", text=text)


def _held_tokens(curve: Curve, mix: int, tables: Engine) -> Array:
    """Cache of one sequence while 1, 2, … decode, mean: context, drafts, state. [N]."""
    replica = curve.replica
    drafts = replica.query_tokens[mix, _variant(curve, tables)] - 1
    profile = replica.profile
    state = profile.memory.state_bytes_per_sequence / profile.model.kv_bytes_per_token
    context = replica.context_tokens[mix, _variant(curve, tables)]
    return np.asarray(context + drafts + state * (drafts + 1))


def _by_batch(curve: Curve, mix: int, tables: Engine, most: int) -> ByBatch:
    """The replica while 0, 1, … `most` sequences decode."""
    replica, load = curve.replica, curve.replica.load
    variant = _variant(curve, tables)[:most]
    place = np.arange(most)
    with np.errstate(all="ignore"):
        prefill = Prefill.of(
            replica.profile,
            load,
            replica.surfaces,
            replica.query_tokens,
            np.arange(1.0, most + 1),
            replica.context_tokens,
        )
    shares = load.shares[mix]
    rounds = (load.decode_tokens / replica.variants.tokens_per_round)[variant] @ shares
    tokens = float(shares @ (load.prefill_tokens @ lengths.WEIGHTS))
    room = _room(tables)

    def beside(values: Array, alone: float) -> Array:
        line = np.concatenate([[alone], values[variant, place]])
        # Where the last may decode the budget can be used up: there is no prompt to cost any.
        return np.where(np.isnan(line), np.roll(line, 1), line)

    return ByBatch(
        rounds=np.maximum(np.concatenate([rounds[:1], rounds]), _FEWEST_ROUNDS),
        round_s=_rounds_s(
            tables, replica.context_tokens[mix, variant], replica.drafting[mix, variant]
        ),
        prefill_s=beside(prefill.mean_engine_s @ shares, _alone_s(curve, mix, tables)),
        prefill_steps=beside(
            prefill.mean_steps @ shares,
            float(shares @ (np.ceil(load.prefill_tokens / room) @ lengths.WEIGHTS)),
        ),
        prefill_share=beside(tokens / prefill.chunk_limit_tokens, tokens / room),
    )


def _rounds_s(tables: Engine, context_tokens: Array, drafting: Array) -> Array:
    """Rounds without prefill while 0, 1, … sequences decode at a mean context. [contexts + 1].

    Args:
        tables: The engine.
        context_tokens: While 1, 2, … decode. [contexts]
        drafting: Part of the sequences that drafts, likewise.
    """
    batch = np.arange(1, len(context_tokens) + 1)
    variant = tables.variant_by_batch[batch]
    rows = np.array(
        [
            np.interp(context, tables.context_tokens, row)
            for context, row in zip(context_tokens, tables.step_s[variant, batch], strict=True)
        ]
    )
    if tables.saved_s is not None:
        rows -= (1 - drafting) * batch * tables.saved_s[variant, batch]
    return np.array([0.0, *rows])


def _room(tables: Engine) -> float:
    """Prompt tokens that fit into a step of an engine that decodes nothing."""
    return float(min(tables.max_batched_tokens, tables.chunk_tokens[-1]))


def _alone_s(curve: Curve, mix: int, tables: Engine) -> float:
    """A prompt on an engine that decodes nothing, mean."""
    load = curve.replica.load
    prompt, room = load.prefill_tokens, _room(tables)
    chunk = np.minimum(prompt, room)
    times_s = tables.chunk_s[tables.variant_by_batch[0], 0]
    own_s = curve.replica.surfaces.own_context_s(
        prompt, chunk, load.cached_tokens + (prompt - chunk) / 2
    )
    whole, rest = np.divmod(prompt, room)
    total = whole * np.interp(room, tables.chunk_tokens, times_s)
    total = total + np.interp(rest, tables.chunk_tokens, times_s) + own_s
    return float(load.shares[mix] @ (total @ lengths.WEIGHTS))
