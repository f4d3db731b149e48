"""Where a model's bytes are, and what a token and a batch touch of them."""

from typing import Final

from capplan.physics.cache import (
    cache_by_kind,
    held_bytes,
    kv_bytes_per_token,
    state_bytes_per_sequence,
)
from capplan.physics.cache_reads import cache_read
from capplan.physics.experts import distinct_experts, independent_routing
from capplan.physics.parameters import Parameters, count_parameters, expert_parameters
from capplan.physics.stored_bytes import COMPONENTS, stored_bytes
from capplan.records.anatomy import Anatomy, Component, KindCache, KvPrecision, Touched
from capplan.records.architecture import Architecture, Moe
from capplan.records.caveat import Caveat
from capplan.records.stored import Stored

BATCHES: Final = (1, 8, 64, 256)
KV_BYTES: Final[dict[KvPrecision, float]] = {"bf16": 2.0, "fp8": 1.0}


def anatomy(
    architecture: Architecture,
    stored: Stored,
    kv_precision: KvPrecision,
    context_tokens: int,
    version: str,
) -> Anatomy:
    """A model taken apart.

    Args:
        architecture: The model.
        stored: Widths at the precision it is served in.
        kv_precision: Of the cache.
        context_tokens: Length of the sequences that are shown. [tokens]
        version: Of this program.

    Returns:
        The anatomy; nothing in it depends on GPUs.
    """
    counted, size = count_parameters(architecture), KV_BYTES[kv_precision]
    components = _components(counted, stored)
    kinds = architecture.layer_kinds
    return Anatomy(
        version=1,
        capplan=version,
        model=architecture.name,
        source=architecture.source,
        published=architecture.published,
        parameters_total=counted.total,
        parameters_active=counted.active,
        parameters_active_without_embedding=counted.active_without_embedding,
        parameters_prediction=counted.prediction,
        weights_bytes=sum(c.weights_bytes for c in components if c.name != "prediction"),
        precision=stored.scheme,
        stored=stored,
        components=components,
        kv_precision=kv_precision,
        kv_bytes_per_token=kv_bytes_per_token(architecture, size),
        state_bytes_per_sequence=state_bytes_per_sequence(architecture, size),
        context_tokens=context_tokens,
        context_bytes_per_sequence=held_bytes(kinds, context_tokens, size),
        caches=_caches(architecture, size),
        touched=tuple(
            _touched(architecture, stored, batch, context_tokens, size) for batch in BATCHES
        ),
        caveats=tuple(_caveats(architecture, context_tokens)),
    )


def _components(counted: Parameters, stored: Stored) -> tuple[Component, ...]:
    """Those that the model has; heads for prediction are passed by no token of plain decoding."""
    inactive = {"lookup_tables": 0, "prediction": 0}
    active = {"routed_experts": counted.routed_experts_active, **inactive}
    sizes = stored_bytes(counted, stored)
    return tuple(
        Component(
            name=part,
            parameters=getattr(counted, part),
            parameters_active=active.get(part, getattr(counted, part)),
            bits=getattr(stored, part),
            weights_bytes=sizes[part],
        )
        for part in COMPONENTS
        if getattr(counted, part)
    )


def _caches(architecture: Architecture, bytes_per_value: float) -> tuple[KindCache, ...]:
    return tuple(
        KindCache(
            kind=cache.kind,
            kv_bytes_per_token=cache.bytes_per_token,
            window_tokens=cache.window_tokens,
            window_bytes_per_sequence=cache.window_bytes,
            state_bytes_per_sequence=cache.state_bytes,
        )
        for cache in cache_by_kind(architecture.layer_kinds, bytes_per_value)
    )


def _touched(
    architecture: Architecture, stored: Stored, batch: int, context_tokens: int, kv_bytes: float
) -> Touched:
    """One token a sequence; of an embedding that is not the head, too, a row for each."""
    sizes = stored_bytes(count_parameters(architecture), stored)
    row = 0.0 if architecture.tied_embeddings else architecture.hidden_size * stored.embedding / 8
    rest = sum(sizes[part] for part in ("attention", "dense", "shared_experts", "router", "norms"))
    head = sizes["embedding"] if architecture.tied_embeddings else sizes["head"]
    read, layers, distinct = 0.0, 0, 0.0
    for kind in architecture.layer_kinds:
        if isinstance(moe := kind.feed_forward, Moe):
            routing = independent_routing(moe.experts, moe.experts_per_token)
            found = float(distinct_experts(routing, batch, 1))
            distinct += kind.layers * found
            layers += kind.layers
            read += kind.layers * found * expert_parameters(moe, architecture.hidden_size)
    experts = read * stored.routed_experts / 8
    cache = cache_read(architecture.layer_kinds, context_tokens, kv_bytes)
    return Touched(
        batch=batch,
        distinct_experts=distinct / layers if layers else None,
        weights_read_bytes=rest + head + batch * row + experts,
        cache_read_bytes=batch * cache.read_bytes,
    )


def _caveats(architecture: Architecture, context_tokens: int) -> list[Caveat]:
    found = []
    if any(isinstance(kind.feed_forward, Moe) for kind in architecture.layer_kinds):
        found.append(
            Caveat(
                about="distinct experts",
                text="modelled: tokens choose independently and no expert is popular, which is the "
                "most a step can touch; real tokens share experts",
            )
        )
    limit = architecture.context_limit
    if limit is not None and context_tokens > limit:
        text = f"{context_tokens:,} tokens are more than the {limit:,} of the configuration"
        found.append(Caveat(about="context", text=text))
    if architecture.lookup_tables:
        text = "counted on the GPUs; engines may keep them in the host's memory"
        found.append(Caveat(about="lookup tables", text=text))
    return found
