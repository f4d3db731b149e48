"""The run behind `capplan profile acceptance`: checkpoints loaded, requests decoded and counted."""

import datetime as dt
from typing import Any

import numpy as np
import transformers

import capplan
from capplan.cli.acceptance_options import Asked
from capplan.cli.drafter_spec import FirstLayers, Folder, Int8, Mtp, Ngram
from capplan.cli.progress import progress
from capplan.errors import Complaint, InputError
from capplan.profiler import checkpoint, device
from capplan.profiler.cached import CachedModel
from capplan.profiler.checkpoint import Checkpoint
from capplan.profiler.real_text import check_real
from capplan.profiler.speculation.drafters import Drafter, ModelDrafter, NgramDrafter
from capplan.profiler.speculation.lighter import first_layers, in_int8
from capplan.profiler.speculation.mtp import MtpDrafter
from capplan.profiler.speculation.result import acceptance
from capplan.profiler.speculation.rounds import Decoding, decode
from capplan.records.acceptance import MeasuredAcceptance, RequestCounts
from capplan.records.caveat import Origin


def run(asked: Asked, name: str) -> MeasuredAcceptance:
    """Decodes every prompt in rounds and counts what was kept.

    Args:
        asked: The command's arguments.
        name: What the drafter is called.

    Raises:
        InputError: A checkpoint cannot be loaded, drafter and target differ in tokens, or prompts
            are random or too long.
    """
    machine = device.choose(None)
    target = checkpoint.load("TARGET", asked.target)
    drafter, description = _drafter(asked, target)
    check_real(target, asked.source, asked.prompts)
    texts = _encoded(target, asked)
    counts = _counts(target, drafter, texts, asked)
    told = "greedy" if asked.temperature == 0 else f"sampled at temperature {asked.temperature:g}"
    template = "chat template applied" if target.templated else "no chat template"
    origin = Origin(
        kind="measured",
        date=dt.datetime.now(tz=dt.UTC).date(),
        machine=machine.machine,
        versions=machine.versions
        | {"transformers": transformers.__version__, "capplan": capplan.__version__},
        note=f"{target.name} with {description}; {len(texts)} prompts of {asked.source}, "
        f"{len(counts)} of which took rounds; {template}; {told}, seed {asked.seed}, about "
        f"{asked.max_tokens} tokens a request at most; exact rejection; low and high are 95 % of "
        "a bootstrap over requests",
    )
    table = acceptance(counts, asked.temperature, asked.seed, origin)
    return MeasuredAcceptance(
        drafter=name,
        kind=drafter.kind,
        description=description,
        acceptance={asked.workload: table},
    )


def _drafter(asked: Asked, target: Checkpoint) -> tuple[Drafter, str]:
    """What drafts, and what it is."""
    spec = asked.drafter
    if isinstance(spec, Ngram):
        tokens = f"the last {spec.shortest} to {spec.longest} tokens"
        return NgramDrafter(spec.shortest, spec.longest), f"n-gram lookup of {tokens}"
    if isinstance(spec, FirstLayers):
        return _of(first_layers(target.model, spec.layers), target, asked), (
            f"its own first {spec.layers} of {len(target.model.get_decoder().layers)} layers"
        )
    if isinstance(spec, Int8):
        return _of(in_int8(target.model), target, asked), "its own INT8 copy (W8A8)"
    if isinstance(spec, Mtp):
        return MtpDrafter(target.model, asked.draft_tokens), "its own multi-token prediction"
    assert isinstance(spec, Folder)
    loaded = checkpoint.load("DRAFTER", spec.path)
    checkpoint.check_alike(target, loaded)
    return _of(loaded.model, target, asked), f"model {loaded.name}"


def _of(model: Any, target: Checkpoint, asked: Asked) -> ModelDrafter:
    return ModelDrafter(CachedModel(model, target.vocabulary), asked.temperature)


def _encoded(target: Checkpoint, asked: Asked) -> list[list[int]]:
    """Prompts as tokens, refused where model and answer do not hold them."""
    texts = [target.encode(prompt.conversation) for prompt in asked.prompts]
    most = getattr(target.model.config.get_text_config(), "max_position_embeddings", None)
    longest = max(map(len, texts)) + asked.max_tokens + asked.draft_tokens
    if most is not None and longest > most:
        rule = f"with its answer the longest prompt must fit {most} tokens"
        raise InputError([Complaint(asked.source, "", rule, f"{longest} tokens")])
    return texts


def _counts(
    target: Checkpoint, drafter: Drafter, texts: list[list[int]], asked: Asked
) -> list[RequestCounts]:
    how = Decoding(asked.draft_tokens, asked.temperature, asked.max_tokens, target.ends)
    verifier = CachedModel(target.model, target.vocabulary)
    counts = []
    with progress("requests", len(texts)) as advance:
        for place, text in enumerate(texts):
            rng = np.random.default_rng([asked.seed, place])
            counts.append(decode(verifier, drafter, text, how, rng).counts)
            advance()
    found = [request for request in counts if request is not None]
    if len(found) < 2:
        rule = "needs two prompts or more whose answer is longer than a token"
        raise InputError([Complaint(asked.source, "", rule, str(len(found)))])
    return found
