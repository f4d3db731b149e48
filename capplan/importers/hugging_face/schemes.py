"""The ways in which configurations say that weights are stored narrower than usual."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from capplan.importers.hugging_face.keys import Keys
from capplan.importers.hugging_face.patterns import Patterns

NVFP4_BITS: Final = 4 + 8 / 16
"""Four bits, and an eight-bit scale for 16 of them."""
MXFP4_BITS: Final = 4 + 8 / 32
"""Four bits, and an eight-bit scale for 32 of them (OCP microscaling formats 1.0)."""
ALGORITHMS: Final = {
    "NVFP4": NVFP4_BITS,
    "W4A16_NVFP4": NVFP4_BITS,
    "W4A8_NVFP4": NVFP4_BITS,
    "FP8": 8.0,
    "FP8_PB_WO": 8.0,
    "W4A8_MXFP4_FP8": MXFP4_BITS,
    "MXFP4": MXFP4_BITS,
    "MXFP8": 8 + 8 / 32,
}
"""Of modelopt."""
METHODS: Final = (
    "fp8",
    "modelopt",
    "modelopt_fp4",
    "modelopt_mixed",
    "compressed-tensors",
    "mxfp4",
    "fbgemm_fp8",
    "gptq",
    "awq",
)
MIXED: Final = "MIXED_PRECISION"
EXPERT_TYPES: Final = {"fp4": MXFP4_BITS, "fp8": 8.0}
"""DeepSeek-V4's word for how routed experts are stored, where it is not as the rest."""


@dataclass(frozen=True)
class Scheme:
    """Stored width of matrices [bit], scales included."""

    label: str
    default: float | None
    """Of matrices that nothing below names; None for the checkpoint's own width."""
    excluded: Patterns = field(default_factory=lambda: Patterns(()))
    named: tuple[tuple[float, Patterns], ...] = ()
    """Widths of matrices that are named; they come before `excluded`."""
    experts: float | None = None
    """Of routed experts, where a word of its own says it."""
    kv_cache: float | None = None

    def bits(self, names: Sequence[tuple[str, int | None]], own: float) -> float:
        """Width of one matrix.

        Args:
            names: What it may be called, with its layer, in the form that `Patterns.match` takes.
            own: Width of what is not narrowed.
        """
        named = self.named_bits(names)
        if named is not None:
            return named
        if self.default is None or any(self.excluded.match(*name) for name in names):
            return own
        return self.default

    def named_bits(self, names: Sequence[tuple[str, int | None]]) -> float | None:
        """Width of a matrix that is named; None for all others."""
        for width, patterns in self.named:
            if any(patterns.match(*name) for name in names):
                return width
        return None

    def differs_in(self, layer: int) -> bool:
        """Whether any name may single this layer out."""
        lists = [self.excluded, *(patterns for _, patterns in self.named)]
        return any(one.singles_out or one.names_layer(layer) for one in lists)


def read(keys: Keys) -> Scheme:
    """The scheme of a `quantization_config`."""
    method = keys.word("quant_method", METHODS, default="modelopt")
    keys.read |= set(keys.left())  # how activations are cut, who made it: nothing stored
    excluded = _patterns(keys, "modules_to_not_convert", "ignore", "exclude_modules")
    kv_cache = _kv_cache(keys)
    if keys.raw("quant_algo") is not None:
        return _modelopt(keys, method, excluded, kv_cache)
    if method == "compressed-tensors":
        return _groups(keys, excluded, kv_cache)
    if method in {"gptq", "awq"}:
        bits, group = keys.size("bits", most=16), keys.size("group_size", default=128, least=-1)
        width = bits + (16 + bits) / group if group > 0 else bits
        return Scheme(f"{method} int{bits}", width, excluded, kv_cache=kv_cache)
    if method == "mxfp4":
        return Scheme("mxfp4", MXFP4_BITS, excluded, kv_cache=kv_cache)
    if method.startswith("modelopt"):
        keys.complain("quant_algo", "needs the algorithm's name")
    label, width = _fp8(keys)
    return Scheme(label, width, excluded, kv_cache=kv_cache)


def read_modelopt(tree: Any, where: Keys) -> Scheme:
    """The scheme of an `hf_quant_config.json`."""
    keys = where.inside("quantization") if isinstance(tree, Mapping) else where
    keys.read |= set(keys.left())
    excluded = _patterns(keys, "exclude_modules", "ignore")
    return _modelopt(keys, "modelopt", excluded, _kv_cache(keys))


def _modelopt(keys: Keys, method: str, excluded: Patterns, kv_cache: float | None) -> Scheme:
    algorithm = keys.word("quant_algo", (*ALGORITHMS, MIXED))
    if algorithm != MIXED:
        silent = not any(keys.given(key) for key in ("exclude_modules", "ignore"))
        label = algorithm.lower() + (", no exceptions listed" if silent else "")
        return Scheme(label, ALGORITHMS[algorithm], excluded, kv_cache=kv_cache)
    listed = keys.raw("quantized_layers")
    by_width: dict[float, list[str]] = {}
    algorithms: set[str] = set()
    for name, one in listed.items() if isinstance(listed, Mapping) else ():
        width = ALGORITHMS.get(str(one.get("quant_algo"))) if isinstance(one, Mapping) else None
        if width is None:
            keys.complain("quantized_layers", f"{str(name)[:80]}: an algorithm that is not known")
        else:
            by_width.setdefault(width, []).append(str(name))
            algorithms.add(str(one["quant_algo"]).lower())
    if not by_width:
        keys.complain("quantized_layers", "needs the algorithm of each layer")
    named = tuple((width, _checked(keys, "quantized_layers", n)) for width, n in by_width.items())
    if method == "fp8":  # the original's fp8, with some matrices narrowed further
        label, width = _fp8(keys)
        return Scheme(f"nvfp4 where listed, {label}", width, named=named, kv_cache=kv_cache)
    label = f"by module: {', '.join(sorted(algorithms))}"
    return Scheme(label, None, named=named, kv_cache=kv_cache)


def _fp8(keys: Keys) -> tuple[str, float]:
    """Eight bits, and a scale for each block of weight_block_size: float32, or a power of two."""
    if not keys.given("weight_block_size"):
        return "fp8", 8.0
    block = keys.whole_numbers("weight_block_size")
    if len(block) != 2 or not all(0 < side <= 65536 for side in block):
        keys.complain("weight_block_size", "needs two sizes")
        return "fp8", 8.0
    scale = 8 if keys.raw("scale_fmt") == "ue8m0" else 32
    return f"fp8 in blocks of {block[0]}x{block[1]}", 8 + scale / (block[0] * block[1])


def _groups(keys: Keys, excluded: Patterns, kv_cache: float | None) -> Scheme:
    """compressed-tensors: groups of modules, each with a width."""
    groups = keys.raw("config_groups")
    found: list[tuple[str, float, list[str]]] = []
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        targets = group.get("targets") if isinstance(group, Mapping) else None
        width = _group_width(weights, group)
        if width is None or not isinstance(targets, list):
            keys.complain("config_groups", "has a group whose weights or targets are not known")
            return Scheme("unknown", None)
        found.append((*width, [str(target) for target in targets]))
    if not found:
        keys.complain("config_groups", "needs a group of modules with the width of its weights")
        return Scheme("unknown", None)
    every = [entry for entry in found if "Linear" in entry[2]]
    named = tuple(
        (width, _checked(keys, "config_groups", targets))
        for _, width, targets in found
        if "Linear" not in targets
    )
    label = ", ".join(dict.fromkeys(label for label, _, _ in found))
    return Scheme(label, every[0][1] if every else None, excluded, named, kv_cache=kv_cache)


def _group_width(weights: Any, group: Any) -> tuple[str, float] | None:
    if not isinstance(weights, Mapping):
        return None
    bits, size = weights.get("num_bits"), weights.get("group_size")
    kind = weights.get("type")
    if type(bits) is not int or not 1 <= bits <= 16 or kind not in ("int", "float"):
        return None
    label = f"{kind}{bits}"
    if type(size) is not int or size < 1:
        return label, float(bits)
    small = "uint8" in str(weights.get("scale_dtype")) or (kind == "float" and size == 16)
    mx = "mxfp" in str(group.get("format"))
    return f"{label} in groups of {size}", bits + (8 if small or mx else 16) / size


def _kv_cache(keys: Keys) -> float | None:
    """What the checkpoint asks the cache to be."""
    scheme = keys.raw("kv_cache_scheme")
    named = keys.raw("kv_cache_quant_algo") or (scheme if isinstance(scheme, str) else None)
    if isinstance(scheme, Mapping):
        bits = scheme.get("num_bits")
        return float(bits) if type(bits) is int and 1 <= bits <= 32 else None
    return {"FP8": 8.0, "NVFP4": NVFP4_BITS}.get(str(named))


def _patterns(keys: Keys, *names: str) -> Patterns:
    key = keys.first(*names)
    listed = keys.raw(key) or []
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        keys.complain(key, "needs a list of names of modules")
        listed = []
    return _checked(keys, key, listed)


def _checked(keys: Keys, key: str, names: Iterable[str]) -> Patterns:
    patterns = Patterns(names)
    if patterns.problem is not None:
        keys.complain(key, f"has a pattern that is not known: {patterns.problem}")
    return patterns
