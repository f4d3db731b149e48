"""What the caller answers for: with anything else a run would go wrong unseen, or never end."""

import numpy as np

from capplan.physics.engine import Engine, Indices, Requests


def check(engine: Engine, requests: Requests) -> None:
    """Refuses an engine or requests that cannot be simulated.

    Raises:
        AssertionError: Shapes disagree, a value that would be read is not finite, or a request
            does not fit into the cache alone.
    """
    _check_engine(engine)
    _check_requests(requests, len(engine.draft_tokens))
    whole = requests.prefill_tokens + requests.cached_tokens + requests.output_tokens
    assert np.all(whole <= engine.cache_tokens), "a request does not fit into the cache"


def _check_engine(engine: Engine) -> None:
    variants, batches = len(engine.draft_tokens), engine.max_batch + 1
    assert engine.max_batch > 0, "no place to decode"
    assert min(engine.max_batched_tokens, engine.chunk_tokens[-1]) > 0, "no token budget"
    assert engine.step_s.shape == (variants, batches, len(engine.context_tokens)), "step_s"
    assert engine.draft_s.shape == (variants, batches), "draft_s"
    assert engine.saved_s is None or engine.saved_s.shape == (variants, batches), "saved_s"
    assert engine.chunk_s.shape == (variants, batches, len(engine.chunk_tokens)), "chunk_s"
    assert engine.own_s.shape == (len(engine.own_tokens), len(engine.own_cached_tokens)), "own_s"
    assert _within(engine.variant_by_batch, variants), "variant_by_batch"
    # Variants that never run at a batch may lie beyond what was measured.
    batch = np.arange(batches)
    least_s = engine.step_s
    if engine.saved_s is not None:
        least_s = engine.step_s - (batch * engine.saved_s)[:, :, None]
    read = (engine.step_s, engine.draft_s, engine.chunk_s, least_s)
    for table in (*(table[engine.variant_by_batch, batch] for table in read), engine.own_s):
        assert np.all(np.isfinite(table)), "a time that would be read is not known"
        assert np.all(table >= 0), "a negative time"


def _check_requests(requests: Requests, variants: int) -> None:
    count, kinds = len(requests.arrival_s), len(requests.group)
    assert count > 0, "no requests"
    by_request = (
        requests.prefill_tokens,
        requests.cached_tokens,
        requests.output_tokens,
        requests.kind,
        requests.noise,
    )
    assert all(len(values) == count for values in by_request), "columns of different length"
    assert np.all(np.diff(requests.arrival_s) >= 0), "arrivals are not in order"
    assert np.all(requests.prefill_tokens > 0), "a prompt has nothing to process"
    assert np.all(requests.cached_tokens >= 0), "negative tokens"
    assert np.all(requests.output_tokens >= 1), "an answer without a token"
    assert np.all(np.isfinite(requests.noise)), "noise"
    assert _within(requests.kind, kinds), "kind"
    assert _within(requests.group, len(requests.group_tokens)), "group"
    assert -1 <= requests.undrafted_group < len(requests.group_tokens), "undrafted_group"
    assert requests.tokens_per_round.shape == (kinds, variants), "tokens_per_round"
    assert requests.second_moment.shape == (kinds, variants), "second_moment"
    assert requests.group_tokens.shape[1:] == (variants,), "group_tokens"
    assert np.all(requests.tokens_per_round >= 1), "a round emits a token at least"
    assert np.all(requests.group_tokens >= 1), "a round emits a token at least"


def _within(places: Indices, count: int) -> bool:
    return bool(np.all((places >= 0) & (places < count)))
