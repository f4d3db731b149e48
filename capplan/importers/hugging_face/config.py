"""A Hugging Face `config.json` becomes an Architecture.

A file is read whole or refused: a parameter count that ignores half of a model is worse than none.
Which keys must be there is the families' business (`families`) and, for every file, `_complete`;
what happens to keys that no reader knows is `unknown`'s; how wide weights are stored is `stored`'s.
"""

import re
from collections.abc import Mapping
from itertools import groupby
from typing import Any, Final

from capplan.errors import Complaint, InputError
from capplan.importers.hugging_face import stored, unknown
from capplan.importers.hugging_face.families import FAMILIES, NESTED
from capplan.importers.hugging_face.family import Family, Layer, together
from capplan.importers.hugging_face.keys import Keys, Where
from capplan.records.architecture import Architecture, LayerKind
from capplan.records.caveat import Source
from capplan.records.feed_forward import Moe

DRAFTER: Final = re.compile("Eagle|DFlash|DSpark|Domino|Medusa", re.IGNORECASE)


def architecture(
    tree: Any, name: str, where: Where, quantization: stored.Quantization | None = None
) -> Architecture:
    """Reads a model's anatomy from its configuration.

    Args:
        tree: The parsed `config.json`.
        name: What the model is to be called.
        where: Place of a key path in the file, as `file:line:column`.
        quantization: The parsed `hf_quant_config.json` beside it, where there is one.

    Returns:
        The text model's anatomy.

    Raises:
        InputError: If the model type is unknown, uses what cannot be described yet, or if keys
            are missing, unknown or wrong; all complaints at once.
    """
    top = _top(tree, where)
    keys, family = _text_model(top, tree)
    hidden, vocabulary = keys.size("hidden_size"), keys.size("vocab_size")
    layers = family.read_layers(keys)
    in_order = _in_order(layers, family, residuals := _residuals(keys, family))
    found = Architecture(
        version=1,
        name=name,
        hidden_size=hidden,
        vocabulary=vocabulary,
        tied_embeddings=_tied(top, keys, family),
        head_bias=family.head_bias_key is not None and keys.flag(family.head_bias_key, False),
        residual_streams=keys.size(family.streams_key, most=64) if family.streams_key else 1,
        stream_head=family.stream_head,
        extra_norms=2 * residuals,
        context_limit=_context(keys, family),
        layer_kinds=together(in_order),
        lookup_tables=family.lookup_tables(keys) if family.lookup_tables else (),
        prediction=family.prediction(keys, in_order) if family.prediction else None,
        source=Source(what="all of the anatomy", where=f"config.json of {name}"),
    )
    width = stored.read(top, keys, found, layers, family.names, quantization)
    _complete(top)
    keys.read |= family.ignored
    unknown.complain(top)
    top.check()
    return found.model_copy(update={"stored": width})


def _top(tree: Any, where: Where) -> Keys:
    if not isinstance(tree, Mapping) or not all(isinstance(key, str) for key in tree):
        rule = "needs a mapping, as in a Hugging Face config.json"
        raise InputError([Complaint(where(()), "", rule, type(tree).__name__)])
    return Keys(tree, (), where)


def _text_model(top: Keys, tree: Mapping[str, Any]) -> tuple[Keys, Family]:
    """The language model's own keys and its family."""
    outer = top.raw("model_type")
    keys = top
    if isinstance(outer, str) and outer in NESTED:
        keys = top.inside("text_config")
        top.check()
    model_type = keys.raw("model_type")
    if model_type is None and keys is not top:
        model_type = NESTED[str(outer)]
    if not isinstance(model_type, str) or model_type not in FAMILIES:
        known = ", ".join(sorted([*FAMILIES, *NESTED]))
        keys.complain("model_type", "not a model type that capplan can read", f"Known: {known}.")
        top.check()
    names = tree.get("architectures")
    if isinstance(names, list) and any(DRAFTER.search(str(name)) for name in names):
        top.complain("architectures", "is a drafter's, not a model's")
        top.check()
    return keys, FAMILIES[str(model_type)]


def _in_order(layers: list[Layer], family: Family, residuals: bool) -> list[LayerKind]:
    """Every layer by itself; equal neighbours share one record."""
    found: list[LayerKind] = []
    for (attention, feed_forward), run in groupby(layers):
        whole = attention.kind != "none" and feed_forward.kind != "none"
        more = family.norms_beside_experts * isinstance(feed_forward, Moe)
        kind = LayerKind(
            layers=1,
            attention=attention,
            feed_forward=feed_forward,
            norms=family.norms + more + 4 * residuals if whole else 1,
            norm_bias=family.norm_bias,
        )
        found += [kind] * len(list(run))
    return found


def _residuals(keys: Keys, family: Family) -> bool:
    return family.residuals_key is not None and keys.size(family.residuals_key, 0, least=0) > 0


def _tied(top: Keys, keys: Keys, family: Family) -> bool:
    """The text model's own word, else that of the whole, else the family's habit."""
    outer = top.flag("tie_word_embeddings", default=family.tied)
    return keys.flag("tie_word_embeddings", default=outer)


def _context(keys: Keys, family: Family) -> int:
    return keys.size("max_position_embeddings", default=family.context)


def _complete(top: Keys) -> None:
    """What every checkpoint's own file states, and abridged ones tend to have lost."""
    names = top.raw("architectures")
    if not isinstance(names, list) or not names:
        top.complain("architectures", "needs a list of class names, as every checkpoint's file has")
