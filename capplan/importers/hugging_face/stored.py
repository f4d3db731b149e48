"""How wide a checkpoint's numbers are, component by component, scales included."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from capplan.importers.hugging_face import modules, schemes
from capplan.importers.hugging_face.family import Layer, Names
from capplan.importers.hugging_face.keys import Keys, Where
from capplan.importers.hugging_face.modules import Module
from capplan.importers.hugging_face.schemes import Scheme
from capplan.records.architecture import Architecture, DraftHead
from capplan.records.stored import Stored

DTYPES: Final = {"bfloat16": 16, "float16": 16, "float32": 32}
PARTS: Final = ("attention", "dense", "routed_experts", "shared_experts")
Called = list[tuple[str, int | None]]
UNNARROWED: Final = 16
"""Of what a narrowed checkpoint leaves alone, where it does not say."""


@dataclass(frozen=True)
class Quantization:
    """An `hf_quant_config.json`."""

    tree: Any
    where: Where


def read(
    top: Keys,
    keys: Keys,
    architecture: Architecture,
    layers: list[Layer],
    names: Names,
    quantization: Quantization | None,
) -> Stored:
    """Widths of a checkpoint.

    Args:
        top: The whole configuration.
        keys: The language model's part of it.
        architecture: What was read of it so far.
        layers: All layers, in the model's order.
        names: What its checkpoint calls blocks.
        quantization: The file beside it that says what is narrowed, where there is one.
    """
    scheme = _scheme(top, keys, quantization)
    own = _own_bits(top, keys, scheme)
    expert_type = _expert_type(top, keys)
    experts = "" if expert_type is None else f"experts in {expert_type:g} bits"
    tally = Tally(scheme, architecture.hidden_size, names, own, expert_type)
    tally.add_layers(layers)
    head = scheme.named_bits([("lm_head", None)]) or own
    return Stored(
        scheme=", ".join(filter(None, [scheme.label or f"{own:g} bits", experts])),
        embedding=own,
        **{part: tally.mean(part) for part in PARTS},
        router=own,
        norms=own,
        head=head,
        # Engram's rows: eight bits, and an eight-bit scale for 32 of them.
        lookup_tables=8 + 8 / 32 if architecture.lookup_tables else own,
        prediction=_prediction(architecture.prediction, len(layers), tally),
        kv_cache=scheme.kv_cache,
    )


class Tally:
    """Sums bits over matrices, by component."""

    def __init__(
        self, scheme: Scheme, hidden: int, names: Names, own: float, experts: float | None
    ) -> None:
        self._scheme = scheme
        self._hidden = hidden
        self._names = names
        self.own = own
        self._experts = experts
        self._bits: dict[str, float] = defaultdict(float)
        self._counts: dict[str, int] = defaultdict(int)

    def another(self) -> "Tally":
        """An empty one for the same checkpoint."""
        return Tally(self._scheme, self._hidden, self._names, self.own, self._experts)

    def add_layers(self, layers: list[Layer]) -> None:
        """Adds a model's layers; those of one shape that no name singles out cost the same."""
        seen: dict[tuple[int, int], list[tuple[str, float, int]]] = {}
        for place, layer in enumerate(layers):
            alike = (id(layer[0]), id(layer[1]))
            key = (place, -1) if self._scheme.differs_in(place) else alike
            if key not in seen:
                seen[key] = self._widths(layer, partial(_called_in, place))
            self._add(seen[key])

    def add_prediction(self, layer: Layer, place: int) -> None:
        """Adds a layer for multi-token prediction, which goes by either of two names."""
        self._add(self._widths(layer, partial(_called_behind, place)))

    def mean(self, *components: str) -> float:
        """Bits a number of some components, or of all; the own width where there is none."""
        chosen = components or tuple(self._counts)
        count = sum(self._counts.get(part, 0) for part in chosen)
        bits = sum(self._bits.get(part, 0.0) for part in chosen)
        return round(bits / count, 4) if count else self.own

    def _widths(
        self, layer: Layer, called: Callable[[str], Called]
    ) -> list[tuple[str, float, int]]:
        return [
            (module.component, self._width(module, called), module.count)
            for module in modules.of_layer(layer, self._hidden, self._names)
        ]

    def _width(self, module: Module, called: Callable[[str], Called]) -> float:
        if not module.narrowable:
            return self.own
        names = called(module.name)
        if self._experts is not None and module.component == "routed_experts":
            return self._scheme.named_bits(names) or self._experts
        return self._scheme.bits(names, self.own)

    def _add(self, widths: list[tuple[str, float, int]]) -> None:
        for component, bits, count in widths:
            self._bits[component] += bits * count
            self._counts[component] += count


def _called_in(layer: int, name: str) -> Called:
    return [(name, layer)]


def _called_behind(layers: int, name: str) -> Called:
    """Layers for prediction go by either of two names: as the next layer, or under mtp."""
    return [(name, layers), (f"mtp.layers.0.{name}", None)]


def _prediction(head: DraftHead | None, layers: int, tally: Tally) -> float:
    """Mean over the layers; the matrix that joins their inputs is counted as they are."""
    if head is None:
        return tally.own
    own = tally.another()
    for kind in head.layer_kinds:
        own.add_prediction((kind.attention, kind.feed_forward), layers)
    return own.mean()


def _scheme(top: Keys, keys: Keys, quantization: Quantization | None) -> Scheme:
    for place in (top, keys):
        if place.given("quantization_config"):
            found = schemes.read(place.inside("quantization_config"))
            keys.raw("quantization_config")
            return found
    if quantization is None:
        return Scheme("", None)
    tree = quantization.tree if isinstance(quantization.tree, Mapping) else {}
    beside = Keys(tree, (), quantization.where, top.report)
    beside.read |= set(tree)
    return schemes.read_modelopt(tree, beside)


def _own_bits(top: Keys, keys: Keys, scheme: Scheme) -> float:
    texts_own = [keys.given(key) for key in ("dtype", "torch_dtype")]
    for outer in ("dtype", "torch_dtype"):
        top.raw(outer)
    holder = keys if any(texts_own) else top
    key = holder.first("dtype", "torch_dtype")
    narrowed = scheme.default is not None or bool(scheme.named)
    if not holder.given(key) and narrowed:
        return UNNARROWED
    return DTYPES[holder.word(key, tuple(DTYPES))]


def _expert_type(top: Keys, keys: Keys) -> float | None:
    """DeepSeek-V4 names the type of its experts apart, inside or outside of the scheme."""
    scheme = top.raw("quantization_config")
    inner = scheme.get("expert_dtype") if isinstance(scheme, Mapping) else None
    if keys.given("expert_dtype"):
        return schemes.EXPERT_TYPES[keys.word("expert_dtype", tuple(schemes.EXPERT_TYPES))]
    return schemes.EXPERT_TYPES.get(str(inner))
