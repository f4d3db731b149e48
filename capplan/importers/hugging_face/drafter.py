"""Drafters that were trained apart: EAGLE-3, P-EAGLE, DFlash, DSpark, Domino and Medusa.

Embedding and output head are the target model's own where a drafter has none of the same size:
engines share them, and checkpoints leave them out. Source of what each kind has beside its layers:
sgl-project/SpecForge, specforge/modeling/draft; Medusa (arXiv 2401.10774), section 2.1.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from capplan.errors import Complaint, InputError
from capplan.importers.hugging_face import feed_forward, gqa, unknown
from capplan.importers.hugging_face.family import together
from capplan.importers.hugging_face.keys import Keys, Where
from capplan.importers.hugging_face.stored import DTYPES
from capplan.records.architecture import DraftHead, LayerKind
from capplan.records.caveat import Source
from capplan.records.drafter_model import DrafterModel

MOST_LAYERS: Final = 1_000
STATES: Final = 3
"""Hidden states of the target that EAGLE-3 joins, where the file does not list their layers."""
RESTATED: Final = frozenset(
    """
    decoder_sparse_step emb_dim max_position_embeddings max_window_layers num_target_layers
    sliding_window target_model_type use_sliding_window
    """.split()  # noqa: SIM905
)
"""Left over from the target's file, or said again elsewhere."""


def drafter(tree: Any, name: str, where: Where) -> DrafterModel:
    """Reads a drafter's anatomy from its configuration.

    Args:
        tree: The parsed `config.json`.
        name: What the drafter is to be called.
        where: Place of a key path in the file, as `file:line:column`.

    Returns:
        The drafter.

    Raises:
        InputError: If it is of no known kind, or if keys are missing, unknown or wrong; all
            complaints at once.
    """
    if not isinstance(tree, Mapping) or not all(isinstance(key, str) for key in tree):
        rule = "needs a mapping, as in a Hugging Face config.json"
        raise InputError([Complaint(where(()), "", rule, type(tree).__name__)])
    keys = Keys(tree, (), where)
    read = KINDS.get(_kind(tree))
    if read is None:
        known = ", ".join(sorted(KINDS))
        keys.complain("architectures", "not a drafter that capplan can read", f"Known: {known}.")
        keys.check()
    assert read is not None
    head = read(keys)
    dtype = keys.first("dtype", "torch_dtype")
    found = DrafterModel(
        version=1,
        name=name,
        hidden_size=keys.size("hidden_size"),
        vocabulary=keys.size("vocab_size"),
        head=head,
        weight_bits=DTYPES[keys.word(dtype, tuple(DTYPES))],
        source=Source(what="all of the anatomy", where=f"config.json of {name}"),
    )
    keys.raw("tie_word_embeddings")
    keys.read |= RESTATED
    unknown.complain(keys)
    keys.check()
    return found


def is_drafter(tree: Mapping[str, Any]) -> bool:
    """Whether a configuration is that of a drafter of a known kind."""
    return bool(_kind(tree))


def _kind(tree: Mapping[str, Any]) -> str:
    """By the class's name, else by a key that only one kind has."""
    names = tree.get("architectures")
    name = str(names[0]).lower() if isinstance(names, list) and names else ""
    for word, kind in WORDS.items():
        if re.search(word, name):
            return kind
    if tree.get("draft_vocab_size") is not None:
        return "eagle3"
    return "medusa" if tree.get("medusa_num_heads") is not None else ""


def _eagle(keys: Keys) -> DraftHead:
    """A layer that sees the embedding beside three joined hidden states, and a small head."""
    head = _eagle_like(keys, "eagle3")
    if keys.flag("fc_norm", default=False):
        return head.model_copy(update={"other_parameters": head.joined_size})
    return head


def _parallel_eagle(keys: Keys) -> DraftHead:
    """The same with several layers, and a vector that stands for states not known yet."""
    keys.raw("norm_before_residual")
    head = _eagle_like(keys, "p-eagle")
    return head.model_copy(update={"other_parameters": head.joined_size})


def _eagle_like(keys: Keys, kind: Any) -> DraftHead:
    keys.raw("norm_output")
    keys.flag("attention_bias", default=False)  # their attention has none, whatever it says
    layers = keys.size("num_hidden_layers", most=MOST_LAYERS)
    hidden = keys.size("hidden_size")
    target = keys.size("target_hidden_size", default=hidden)
    states = STATES
    if keys.given("eagle_config"):
        inner = keys.inside("eagle_config")
        inner.raw("use_aux_hidden_state")
        states = len(inner.whole_numbers("eagle_aux_hidden_state_layer_ids")) or STATES
    layer = _layer(keys, gqa.grouped(keys))
    first = layer.model_copy(update={"norms": 3})
    rest = (layer.model_copy(update={"layers": layers - 1}),) if layers > 1 else ()
    return DraftHead(
        kind=kind,
        layer_kinds=(first, *rest),
        hidden_size=hidden,
        joined_size=states * target,
        first_layer_inputs=2,
        norms=1,
        embedding_rows=0 if target == hidden else keys.size("vocab_size"),
        head_rows=keys.size("draft_vocab_size"),
        token_map_rows=keys.size("vocab_size"),
    )


def _dflash(keys: Keys) -> DraftHead:
    """Layers that fill in a block of tokens at once, behind joined hidden states."""
    return _block(keys, "dflash", keys.inside("dflash_config"))


def _dspark(keys: Keys) -> DraftHead:
    """DFlash with a head that biases a token by the last one, and one that guesses acceptance."""
    inner = keys.inside("dflash_config")
    inner.word("projector_type", ("dspark",))
    inner.word("attention_mode", ("gqa", "mha"), default="gqa")
    hidden, vocabulary = keys.size("hidden_size"), keys.size("vocab_size")
    rank = inner.size("markov_rank", default=0, least=0)
    markov = {
        "vanilla": 0,
        "gated": (hidden + rank + 1) * rank,
        "rnn": (2 * rank + hidden + 1) * 3 * rank,
    }
    form = inner.word("markov_head_type", tuple(markov), default="vanilla")
    other = (2 * vocabulary * rank + markov[form]) if rank else 0
    if inner.flag("enable_confidence_head", default=False):
        with_markov = inner.flag("confidence_head_with_markov", default=False)
        other += hidden + 1 + rank * with_markov
    return _block(keys, "dspark", inner, other)


def _domino(keys: Keys) -> DraftHead:
    """DFlash with a recurrent unit that feeds a low-rank output head."""
    inner = keys.inside("dflash_config")
    inner.word("projector_type", ("domino",))
    hidden, vocabulary = keys.size("hidden_size"), keys.size("vocab_size")
    width, unit = inner.size("emb_dim"), inner.size("gru_hidden_dim")
    for training in ("pure_draft_prefix_len", "shift_label"):
        inner.raw(training)
    head = (hidden + unit) * width + width * vocabulary
    return _block(keys, "domino", inner, 3 * unit * (hidden + unit) + head)


def _block(keys: Keys, kind: Any, inner: Keys, other: int = 0) -> DraftHead:
    layers = keys.size("num_hidden_layers", most=MOST_LAYERS)
    hidden = keys.size("hidden_size")
    form = gqa.Form(head_norm=True, bias_key="attention_bias", output_bias=True)
    kinds = gqa.switched(keys, layers, form)
    places = inner.whole_numbers("target_layer_ids")
    if not places:
        inner.complain("target_layer_ids", "needs the layers whose hidden states are joined")
    return DraftHead(
        kind=kind,
        layer_kinds=together([_layer(keys, attention) for attention in kinds]),
        draft_tokens=keys.size("block_size"),
        hidden_size=hidden,
        joined_size=max(1, len(places)) * keys.size("target_hidden_size", default=hidden),
        norms=2,
        other_parameters=other,
    )


def _medusa(keys: Keys) -> DraftHead:
    """Heads side by side: residual layers and an output head each."""
    heads = keys.size(keys.first("medusa_num_heads", "num_heads"), most=MOST_LAYERS)
    layers = keys.size(keys.first("medusa_num_layers", "num_hidden_layers"), most=MOST_LAYERS)
    hidden = keys.size("hidden_size")
    keys.raw("base_model_name_or_path")
    return DraftHead(
        kind="medusa",
        copies=heads,
        draft_tokens=heads,
        hidden_size=hidden,
        head_rows=keys.size("truncated_vocab_size", default=keys.size("vocab_size")),
        other_parameters=layers * (hidden * hidden + hidden),
    )


def _layer(keys: Keys, attention: Any) -> LayerKind:
    return LayerKind(layers=1, attention=attention, feed_forward=feed_forward.dense_layer(keys))


KINDS: Final[dict[str, Callable[[Keys], DraftHead]]] = {
    "eagle3": _eagle,
    "p-eagle": _parallel_eagle,
    "dflash": _dflash,
    "dspark": _dspark,
    "domino": _domino,
    "medusa": _medusa,
}
WORDS: Final = {
    "peagle": "p-eagle",
    "eagle": "eagle3",
    "dspark": "dspark",
    "domino": "domino",
    "dflash": "dflash",
    "medusa": "medusa",
}
"""Parts of class names, in the order in which they are looked for."""
