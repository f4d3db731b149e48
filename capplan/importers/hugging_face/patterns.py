"""Names of modules, as configurations write them: exact, as a beginning, with *, or as `re:`.

Prefixes differ from checkpoint to checkpoint (`model.`, `backbone.`, `model.language_model.`), and
so do names of blocks; both sides are brought to one form before they are compared.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from fnmatch import translate
from typing import Final

PREFIX: Final = re.compile(r"^\*?(language_model\.|model\.|backbone\.)+")
RENAMED: Final = (
    (re.compile(r"\bblock_sparse_moe\b"), "mlp"),
    (re.compile(r"\bffn\b"), "mlp"),
    (re.compile(r"\bfeed_forward\b"), "mlp"),
    (re.compile(r"\battn\b"), "self_attn"),
    (re.compile(r"^head$"), "lm_head"),
    (re.compile(r"^embeddings$"), "embed_tokens"),
)
LAYER: Final = re.compile(r"^layers\.(\d{1,5})(?:\.(.*))?$")
NUMBERED: Final = re.compile(r"layers\W*\d")
PLAIN_REGEX: Final = re.compile(r"^(?:[\w\-^$]|\\\.|\\d\+?|\.\*|\((?:[\w|\-]|\\\.)+\))*$")
"""Literal text, escaped dots, digits, `.*` and alternatives: nothing that could take long."""
LONGEST: Final = 200


class Patterns:
    """Module names that a configuration lists; `problem` says which one cannot be read."""

    def __init__(self, names: Iterable[str]) -> None:
        self.problem: str | None = None
        self.singles_out = False
        """A name that is not about one layer has a layer's number in it all the same."""
        self._everywhere: list[re.Pattern[str]] = []
        self._in_layer: dict[int, list[re.Pattern[str]]] = defaultdict(list)
        for name in dict.fromkeys(names):
            self._add(name)

    def names_layer(self, layer: int) -> bool:
        """Whether any name is about this layer alone."""
        return layer in self._in_layer

    def match(self, name: str, layer: int | None = None) -> bool:
        """Whether a module is listed.

        Args:
            name: In the common form; inside a layer without `layers.<number>.`.
            layer: Its layer.
        """
        inside = self._in_layer.get(layer, []) if layer is not None else []
        full = name if layer is None else f"layers.{layer}.{name}"
        return any(one.match(name) for one in inside) or any(
            one.match(full) for one in self._everywhere
        )

    def _add(self, name: str) -> None:
        if len(name) > LONGEST:
            self.problem = name[:60]
        elif name.startswith("re:"):
            self._add_regex(name)
        else:
            common = PREFIX.sub("", name)
            for pattern, instead in RENAMED:
                common = pattern.sub(instead, common)
            inside = LAYER.match(common)
            if inside is not None:
                self._in_layer[int(inside[1])].append(_matcher(inside[2] or "*"))
            else:
                self.singles_out |= NUMBERED.search(common) is not None
                self._everywhere.append(_matcher(common))

    def _add_regex(self, name: str) -> None:
        body = name.removeprefix("re:")
        if PLAIN_REGEX.match(body) is None:
            self.problem = name
            return
        for pattern, instead in RENAMED:
            body = pattern.sub(instead, body)
        self.singles_out |= NUMBERED.search(body) is not None
        self._everywhere.append(re.compile(body))


def _matcher(name: str) -> re.Pattern[str]:
    """A module, and all inside it; a name without dots also as the last part of a path."""
    if "*" in name:
        return re.compile(rf"{translate(name)}|{translate(name + '.*')}")
    exact = re.escape(name)
    return re.compile(rf"(?:.*\.)?{exact}(?:\..*)?$" if "." not in name else rf"{exact}(?:\..*)?$")
