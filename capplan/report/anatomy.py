"""A model's anatomy as tables."""

from typing import Any, Final

from capplan.records.anatomy import Anatomy, Component, KindCache, Touched
from capplan.records.architecture import LayerKind
from capplan.report import numbers
from capplan.report.fit import notes as fit_notes
from capplan.report.fit import tables as fit_tables
from capplan.report.layout import Note, Report, Table

NAMES: Final = {
    "dense": "dense MLP",
    "head": "output head",
    "prediction": "prediction layers",
}
KINDS: Final = {
    "gqa": "grouped",
    "mla": "latent",
    "compressed": "compressed",
    "delta_net": "gated delta net",
    "kda": "Kimi delta",
    "mamba": "Mamba-2",
    "cross": "cross",
    "none": "no attention",
}


def report(anatomy: Anatomy) -> Report:
    """Everything that `capplan show` tells."""
    fit = anatomy.fit
    return Report(
        title=f"{anatomy.model}: {anatomy.precision}",
        subtitle=_subtitle(anatomy),
        tables=(
            _components(anatomy),
            _caches(anatomy),
            _touched(anatomy),
            *(() if fit is None else fit_tables(fit, anatomy.context_tokens)),
        ),
        notes=(
            *(() if fit is None else fit_notes(fit)),
            Note("Caveats", tuple(f"{c.about}: {c.text}" for c in anatomy.caveats)),
            Note("Definitions", DEFINITIONS),
        ),
    )


DEFINITIONS: Final = (
    "Parameters are the text tower's; an output head that reuses the embedding counts once.",
    "Active: what one token passes, embedding and output head as whole matrices.",
    "Prediction layers (MTP) draft: in memory where they are loaded, never in the total.",
    "tp: GPUs that share each head and width. ep: groups that share out whole experts.",
    "xN: copies of attention, each with sequences of its own. KB, MB, GB are powers of 1000.",
)


def _subtitle(anatomy: Anatomy) -> tuple[str, ...]:
    total, active = anatomy.parameters_total, anatomy.parameters_active
    without = anatomy.parameters_active_without_embedding
    counted = f"parameters: {numbers.parameters(total)} total, {numbers.parameters(active)} active"
    lines = [f"{counted} a token ({numbers.parameters(without)} without the embedding)"]
    published = anatomy.published
    if published is not None:
        said = f"published:  {numbers.parameters(published.parameters_total)} total"
        if published.parameters_active is not None:
            said += f", {numbers.parameters(published.parameters_active)} active"
        lines.append(said if published.note is None else f"{said} ({published.note})")
    lines.append(f"from: {anatomy.source.where}")
    return tuple(lines)


def _components(anatomy: Anatomy) -> Table:
    ordered = sorted(anatomy.components, key=lambda one: -one.weights_bytes)
    inside = [one for one in ordered if one.name != "prediction"]
    beside = [one for one in ordered if one.name == "prediction"]
    total = (
        "total",
        numbers.parameters(anatomy.parameters_total),
        numbers.parameters(anatomy.parameters_active),
        f"{8 * anatomy.weights_bytes / anatomy.parameters_total:.2f}",
        numbers.size(anatomy.weights_bytes),
        "",
    )
    return Table(
        title="Where the bytes are",
        columns=("", "parameters", "active", "bits", "bytes", "share"),
        rows=(
            *(_component(one, anatomy.weights_bytes) for one in inside),
            total,
            *((*_component(one, anatomy.weights_bytes)[:-1], "beside") for one in beside),
        ),
    )


def _component(one: Component, whole: float) -> tuple[str, ...]:
    return (
        NAMES.get(one.name, one.name.replace("_", " ")),
        numbers.parameters(one.parameters),
        numbers.parameters(one.parameters_active),
        f"{one.bits:.2f}",
        numbers.size(one.weights_bytes),
        f"{one.weights_bytes / whole:.1%}",
    )


def _caches(anatomy: Anatomy) -> Table:
    context = numbers.size(anatomy.context_bytes_per_sequence)
    return Table(
        title=f"What a sequence keeps ({anatomy.kv_precision} cache)",
        columns=("layers", "a token", "window", "full window", "state"),
        rows=(
            *(_cache(cache) for cache in anatomy.caches),
            (
                f"all: {context} at {anatomy.context_tokens:,} tokens",
                numbers.size(anatomy.kv_bytes_per_token),
                "",
                _size(sum(one.window_bytes_per_sequence for one in anatomy.caches)),
                _size(sum(one.state_bytes_per_sequence for one in anatomy.caches)),
            ),
        ),
    )


def _cache(cache: KindCache) -> tuple[str, ...]:
    return (
        layer_words(cache.kind),
        _size(cache.kv_bytes_per_token),
        f"{cache.window_tokens:,}" if cache.window_tokens else numbers.ABSENT,
        _size(cache.window_bytes_per_sequence),
        _size(cache.state_bytes_per_sequence),
    )


def layer_words(kind: LayerKind) -> str:
    """Layers of a kind in a few words."""
    attention: Any = kind.attention
    words = f"{kind.layers} {KINDS[attention.kind]}"
    heads = getattr(attention, "heads", None) or getattr(attention, "value_heads", None)
    if heads is not None:
        words += f" {heads}"
        words += f":{attention.kv_heads}" if hasattr(attention, "kv_heads") else ""
    if getattr(attention, "read_tokens", None) is not None:
        words += f", {attention.read_tokens:,} read"
    forward: Any = kind.feed_forward
    if forward.kind == "moe":
        return f"{words}; {forward.experts_per_token} of {forward.experts}"
    return f"{words}; {forward.kind}" if forward.kind != "none" else words


def _touched(anatomy: Anatomy) -> Table:
    return Table(
        title=f"What one decoding step reads, at {anatomy.context_tokens:,} tokens of context",
        columns=("batch", "experts (modelled)", "weights", "caches", "a token"),
        rows=tuple(_row(one) for one in anatomy.touched),
    )


def _row(one: Touched) -> tuple[str, ...]:
    distinct = one.distinct_experts
    read = one.weights_read_bytes + one.cache_read_bytes
    return (
        str(one.batch),
        numbers.ABSENT if distinct is None else f"{distinct:.1f}",
        numbers.size(one.weights_read_bytes),
        numbers.size(one.cache_read_bytes),
        numbers.size(read / one.batch),
    )


def _size(value_bytes: float) -> str:
    return numbers.size(value_bytes) if value_bytes else numbers.ABSENT
