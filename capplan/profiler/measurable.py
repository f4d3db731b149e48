"""Which models the stand-in layers of this room can take the place of."""

from capplan.errors import MeasureError
from capplan.records.architecture import Architecture, Dense, Gqa, LayerKind, Mla, Moe


def check(architecture: Architecture) -> None:
    """Refuses models whose steps would not be measured as they are.

    Raises:
        MeasureError: With everything that the layers here do not have.
    """
    missing = {what for kind in architecture.layer_kinds for what in _missing(kind)}
    if architecture.residual_streams > 1:
        missing.add("several residual streams")
    if architecture.lookup_tables:
        missing.add("lookup tables")
    if missing:
        what = ", ".join(sorted(missing))
        raise MeasureError(
            f"{architecture.name} has {what}: steps of such models cannot be measured yet\n"
            "    Give measurements of a serving engine instead."
        )


def _missing(kind: LayerKind) -> list[str]:
    return [*_of_attention(kind), *_of_feed_forward(kind)]


def _of_attention(kind: LayerKind) -> list[str]:
    shape = kind.attention
    if not isinstance(shape, Gqa | Mla):
        return [f"layers of kind {shape.kind}"]
    found = ["output gates"] if shape.output_gate else []
    if shape.read_tokens is not None:
        found.append("sparse attention")
    if isinstance(shape, Mla):
        return found if shape.rope_head_size else [*found, "attention without positions"]
    odd = {
        "attention windows": shape.window_tokens is not None,
        "values of another size than keys": shape.value_head_size not in {None, shape.head_size},
        "keys that are values": shape.keys_as_values,
        "attention sinks": shape.sinks,
        "norms over all heads": shape.whole_norm,
        "output biases": shape.output_bias,
    }
    return [*found, *(what for what, there in odd.items() if there)]


def _of_feed_forward(kind: LayerKind) -> list[str]:
    shape = kind.feed_forward
    if not isinstance(shape, Dense | Moe):
        return ["layers without a feed-forward part"]
    found = [] if shape.gated else ["feed-forward layers without a gate"]
    if isinstance(shape, Dense):
        return [*found, "feed-forward biases"] if shape.bias else found
    if shape.latent_size is not None:
        found.append("latent experts")
    if shape.expert_bias:
        found.append("biases of experts")
    return found
