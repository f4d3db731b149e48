"""Deployments of published rounds, composed of operator tables or, without any, estimated."""

import re
from dataclasses import replace
from functools import cache
from typing import Final

from capplan.backtester.gpus import RATES, TABLES
from capplan.cli import models
from capplan.cli.backtest_steps import ComposedSteps, EstimatedSteps, routings
from capplan.composer.asked import Asked
from capplan.composer.band import experts_of
from capplan.composer.compose import composed
from capplan.composer.drafting import as_model, draft_time
from capplan.composer.wanted import Drafting
from capplan.errors import Complaint, InputError
from capplan.files.catalogue import find, names
from capplan.files.reader import read
from capplan.importers.silicon import silicon
from capplan.physics import draft_model
from capplan.physics.draft_model import DraftModel
from capplan.physics.estimated_step import EstimatedStep
from capplan.physics.precision import formats
from capplan.physics.sharding import Split, broken_rules
from capplan.records.architecture import Architecture, Dense, DraftHead, Moe, NoFeedForward
from capplan.records.known_drafter import KnownDrafter
from capplan.records.published import PublishedRound
from capplan.records.stored import Stored

SAME_SHAPE: Final = {
    "deepseek-v3.1": "deepseek-v3",
    "qwen3.8-27b": "qwen3.5-27b",
}
"""Models that are drawn as another: DeepSeek-V3.1 is V3 trained on; of Qwen3.8-27B no configuration
was at hand, and those of Qwen3.5 and 3.6 of that size agree."""
BYTES: Final = {"bf16": 2.0, "fp8": 1.0, "nvfp4": 0.5625, "mxfp4": 0.53, "int4": 0.6}
"""A stored weight with its scales; of int4 that of llama.cpp's Q4_K mixtures, 4.85 bits."""
NODE: Final = 8


def steps(published: PublishedRound) -> ComposedSteps | EstimatedSteps:
    """Step and drafting times of a published round's deployment.

    Raises:
        InputError: The model, the GPU or the drafter is not known, or the layout is not one node's.
    """
    assert published.model is not None
    if published.gpu is None or published.gpu not in RATES:
        raise _refused("GPU", "no rates of it are known", published.gpu)
    if published.gpus > NODE:
        raise _refused("layout", "spans several nodes", str(published.gpus))
    model = _model(published.model)
    split = Split(published.gpus, published.gpus)
    broken = broken_rules(model.layer_kinds, split)
    if broken:
        raise _refused("layout", broken[0].rule, broken[0].found)
    drafter = _drafter(published, model)
    try:
        return _composed(published, model, split, drafter)
    except InputError:
        return _estimated(published, model, split, drafter)


def _composed(
    published: PublishedRound, model: Architecture, split: Split, drafter: DraftModel | None
) -> ComposedSteps:
    if published.gpu not in TABLES or published.engine is None:
        raise _refused("GPU", "has no tables", published.gpu)
    asked = _asked(model, TABLES[published.gpu], split, published.engine, published.weights)
    tables = silicon(asked.gpu, asked.engine)
    own = None if drafter is None else draft_time(asked, Drafting(drafter, (), ()), tables)
    target = {
        overlap: composed(replace(asked, routing=routing), tables)
        for overlap, routing in routings(model).items()
    }
    return ComposedSteps(target, own)


def _asked(model: Architecture, gpu: str, split: Split, engine: str, weights: str | None) -> Asked:
    stored = formats(model.stored or Stored(scheme="16 bits"))
    blocks = model.stored is not None and "fp8 in blocks" in model.stored.scheme
    names = {part: weights or name for part, name in stored.items()}
    dense, experts = (
        "fp8_block" if names[part] == "fp8" and blocks else names[part]
        for part in ("dense", "routed_experts")
    )
    sparse = experts_of(model) is not None
    return Asked(model, gpu, split, engine, dense, experts if sparse else None, "bf16")


def _estimated(
    published: PublishedRound, model: Architecture, split: Split, drafter: DraftModel | None
) -> EstimatedSteps:
    assert published.gpu is not None
    rates = RATES[published.gpu]
    stored = formats(model.stored or Stored(scheme="16 bits"))
    width, experts = (
        BYTES.get(published.weights or stored[part], 2.0) for part in ("dense", "routed_experts")
    )
    target = EstimatedStep(model, split, rates, width, experts)
    if drafter is None:
        return EstimatedSteps(target, None)
    whole = drafter.model is not None
    shape = as_model(drafter, model)
    # What drafting waits for its host is counted with the round.
    width = 2.0 if whole else width
    own = EstimatedStep(shape, drafter.split(split), rates, width, width, host_s=0.0)
    return EstimatedSteps(target, own)


@cache
def _model(text: str) -> Architecture:
    """The model that a source means by its name; what follows it says nothing of its shape."""
    first = text.lower().split()[0].split("/")[0]
    name = re.sub(r"-(instruct|fp4|fp8|nvfp4|bf16)$", "", first)
    try:
        return models.architecture(SAME_SHAPE.get(name, name))
    except InputError as error:
        raise _refused("model", "its shape is not known", text) from error


def _drafter(published: PublishedRound, model: Architecture) -> DraftModel | None:
    """None for a drafter that costs host time alone."""
    kind = published.drafter
    if kind is None or kind == "ngram":
        return None
    if kind == "eagle3":
        return _known(model) or _eagle(model)
    if kind == "eagle":
        return _eagle(model)
    if kind != "mtp":
        return draft_model.of_model(_model(kind))
    found = draft_model.built_in(model, model.stored or Stored(scheme="16 bits"))
    if found is None:
        raise _refused("drafter", "its shape is not known", kind)
    return found


@cache
def _known(model: Architecture) -> DraftModel | None:
    """An EAGLE-3 head that is known for a model."""
    known = (read(find("drafters", name), KnownDrafter) for name in names("drafters"))
    heads = (one.drafter for one in known if model.name in one.drafts_for and one.drafter)
    return next((draft_model.of_head(one) for one in heads if one.head.kind == "eagle3"), None)


def _eagle(model: Architecture) -> DraftModel:
    """One dense layer of the model's own shape on its hidden states, with the model's output head.

    Source:
        Li et al., "EAGLE", arXiv 2401.15077: a decoder layer behind a matrix that joins embedding
        and hidden state. The layer for a sparse model is as wide as one of its experts, as EAGLE's
        for Mixtral is.
    """
    kind = model.layer_kinds[0]
    shape = kind.feed_forward
    if isinstance(shape, NoFeedForward):
        raise _refused("drafter", "its shape is not known", "eagle")
    width = shape.expert_width if isinstance(shape, Moe) else shape.width
    layer = kind.model_copy(update={"layers": 1, "feed_forward": Dense(kind="dense", width=width)})
    head = DraftHead(kind="eagle3", layer_kinds=(layer,), joined_size=2 * model.hidden_size)
    return DraftModel("eagle", model.hidden_size, 1, Stored(scheme="16 bits"), head=head)


def _refused(key: str, rule: str, found: str | None) -> InputError:
    return InputError([Complaint("backtest", key, rule, found)])
