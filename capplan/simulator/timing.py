"""What a step takes, read between the knots of the engine's tables."""

from capplan.physics.surface import Array
from capplan.simulator.jit import jit
from capplan.simulator.state import Tables


@jit
def bracket(knots: Array, value: float) -> tuple[int, int, float]:
    """The knots around a value and its way from the lower to the upper; the nearest outside."""
    last = len(knots) - 1
    if value <= knots[0]:
        return 0, 0, 0.0
    if value >= knots[last]:
        return last, last, 0.0
    upper = 1
    while knots[upper] <= value:
        upper += 1
    lower = upper - 1
    return lower, upper, (value - knots[lower]) / (knots[upper] - knots[lower])


@jit
def round_s(tables: Tables, variant: int, batch: int, context_tokens: float) -> float:
    """A step without prefill: `batch` sequences decode at a mean context [s]."""
    lower, upper, way = bracket(tables.context_tokens, context_tokens)
    low = tables.step_s[variant, batch, lower]
    return float(low + way * (tables.step_s[variant, batch, upper] - low))


@jit
def chunk_s(tables: Tables, variant: int, batch: int, tokens: float) -> float:
    """What the prefill tokens of a step add to it [s]."""
    lower, upper, way = bracket(tables.chunk_tokens, tokens)
    low = tables.chunk_s[variant, batch, lower]
    return float(low + way * (tables.chunk_s[variant, batch, upper] - low))


@jit
def own_s(tables: Tables, tokens: float, cached_tokens: float) -> float:
    """What a prompt's chunk adds by attending to the prompt's own context before it [s]."""
    lower, upper, way = bracket(tables.own_tokens, tokens)
    left, right, along = bracket(tables.own_cached_tokens, cached_tokens)
    table = tables.own_s
    low = table[lower, left] + along * (table[lower, right] - table[lower, left])
    high = table[upper, left] + along * (table[upper, right] - table[upper, left])
    part = min(1.0, tokens / tables.own_tokens[0])
    return float(part * (low + way * (high - low)))


@jit
def alone_s(tables: Tables, prefill_tokens: float, cached_tokens: float) -> float:
    """A prompt's chunks, each as large as may be, on an engine that does nothing else [s]."""
    most = min(float(tables.max_batched_tokens), tables.chunk_tokens[-1])
    variant = tables.variant_by_batch[0]
    total = 0.0
    while prefill_tokens > 0:
        tokens = min(prefill_tokens, most)
        total += chunk_s(tables, variant, 0, tokens) + own_s(tables, tokens, cached_tokens)
        prefill_tokens -= tokens
        cached_tokens += tokens
    return total


@jit
def each_alone_s(
    tables: Tables, prefill_tokens: Array, cached_tokens: Array, seconds: Array
) -> None:
    """Fills `seconds` with `alone_s` of each prompt."""
    for request in range(len(prefill_tokens)):
        seconds[request] = alone_s(tables, prefill_tokens[request], cached_tokens[request])
