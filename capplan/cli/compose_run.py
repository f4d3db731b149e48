"""What `capplan compose` and `capplan plan --on` were asked for, read and composed."""

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from capplan.cli import models
from capplan.cli.hardware import Hardware, hardware
from capplan.cli.known_drafters import drafting
from capplan.cli.measured_routing import measured_routing
from capplan.composer import Asked
from capplan.composer.profile import ComposedProfile, composed_profile
from capplan.composer.room import room
from capplan.composer.wanted import MOST_DRAFTS, Wanted
from capplan.errors import Complaint, InfeasibleError, InputError
from capplan.importers.silicon import silicon
from capplan.importers.silicon.package import PACKAGE
from capplan.importers.silicon.package import version as package_version
from capplan.physics.experts import Routing
from capplan.physics.operators import Silicon
from capplan.physics.precision import BITS, at_precision, formats
from capplan.physics.sharding import Split, broken_rules
from capplan.records.architecture import Architecture, Moe
from capplan.records.stored import Stored

SHORTEST_CACHE: Final = 131_072
"""Tokens of cache that the smallest layout of a plan must leave: 32 sequences of 4096."""
BLOCKS: Final = "fp8 in blocks of 128x128"
STORED: Final = "stored"
_PARTS: Final = {True: ("attention", "routed_experts"), False: ("dense", "dense")}
"""Whose width names the matrices' and the experts' precision, in sparse and in dense models."""


@dataclass(frozen=True)
class Choice:
    """Options that decide what is composed."""

    on: str
    fleet: str | None = None
    engine: str = "vllm"
    tp: int | None = None
    ep: int | None = None
    weights: str = "stored"
    experts: str | None = None
    cache: str | None = None
    drafter: str | None = None
    draft_tokens: int = MOST_DRAFTS
    routing: str | None = None
    coarse: bool = False


@dataclass(frozen=True)
class Found:
    """A composed deployment and the GPUs it stands on."""

    composed: ComposedProfile
    hardware: Hardware


def compose(model: str, choice: Choice, date: dt.date | None = None) -> Found:
    """Composes the layout that was asked for: all GPUs in one replica, unless `tp` says otherwise.

    Raises:
        InputError: With what is wrong with the options, or what has no table.
        InfeasibleError: The weights do not fit.
    """
    there = hardware(choice.on, choice.fleet)
    split = Split(there.gpus, choice.tp or there.gpus, choice.ep or 1)
    return Found(_composed(models.architecture(model), choice, there, split, date), there)


def smallest(model: str, choice: Choice) -> Found:
    """Composes the smallest layout that leaves a cache worth having, or the one of `tp` GPUs.

    Raises:
        InputError: With what is wrong with the options, or what has no table.
        InfeasibleError: No layout of so many GPUs holds the weights.
    """
    there, architecture = hardware(choice.on, choice.fleet), models.architecture(model)
    refused: InputError | None = None
    for split in _layouts(architecture, choice, there):
        try:
            return Found(_composed(architecture, choice, there, split, None), there)
        except InputError as error:
            refused = refused or error
    if refused is not None:
        raise refused
    raise InfeasibleError(
        f"{architecture.name}: no layout of up to {there.gpus} x {there.name} holds the weights "
        f"and {SHORTEST_CACHE:,} tokens of cache; name more GPUs, or compose a profile with "
        "other --weights"
    )


def _layouts(model: Architecture, choice: Choice, there: Hardware) -> Iterator[Split]:
    if choice.tp is not None:
        yield Split(choice.tp, choice.tp, choice.ep or 1)
        return
    weights = served(model, choice.weights, choice.experts)
    cache = _cache(model, choice.cache)
    for gpus in (1, 2, 4, 8):
        split = Split(gpus, gpus)
        if gpus > there.gpus or broken_rules(model.layer_kinds, split):
            continue
        held = room(model, weights.stored, split, cache, there.gpu.memory_bytes)
        if held.weights_fit and held.capacity_tokens >= SHORTEST_CACHE:
            yield split


def _composed(
    model: Architecture, choice: Choice, there: Hardware, split: Split, date: dt.date | None
) -> ComposedProfile:
    tables = silicon(there.name, choice.engine)
    weights = served(model, choice.weights, choice.experts)
    asked = Asked(
        model=model,
        gpu=there.name,
        split=split,
        engine=choice.engine,
        weights=weights.matrices,
        experts=weights.experts,
        cache=_cache(model, choice.cache),
        routing=_routing(model, choice),
    )
    wanted = Wanted(
        asked=asked,
        stored=weights.stored,
        gpu=there.gpu,
        drafting=drafting(choice.drafter, model, weights.stored),
        date=date or dt.datetime.now(dt.UTC).date(),
        versions=_versions(tables),
        draft_tokens=choice.draft_tokens,
        coarse=choice.coarse,
    )
    return composed_profile(wanted, tables)


def _routing(model: Architecture, choice: Choice) -> Routing | None:
    if choice.routing is None:
        return None
    return measured_routing(choice.routing, model, choice.draft_tokens)


@dataclass(frozen=True)
class Served:
    """Precision of the weights: what they take in memory, and what tables call it."""

    stored: Stored
    matrices: str
    experts: str | None
    """None in a dense model."""


def served(model: Architecture, weights: str, experts: str | None) -> Served:
    """Precision of a model's weights.

    Args:
        model: The model.
        weights: Of all matrices, or `stored` for what the checkpoint has.
        experts: Of routed experts, where it is another.

    Raises:
        InputError: A dense model has no experts, or there is no such precision.
    """
    sparse = any(isinstance(kind.feed_forward, Moe) for kind in model.layer_kinds)
    stored = model.stored or Stored(scheme="16 bits, assumed")
    if experts is not None and not sparse:
        rule = f"{model.name} has no routed experts"
        raise InputError([Complaint("--experts", "", rule, experts)])
    if weights == STORED:
        found = formats(stored)
        names = [_blocked(found[part], stored) for part in _PARTS[sparse]]
    else:
        stored = _at(weights)
        names = [weights, weights]
    if experts is not None:
        scheme = f"{stored.scheme}, routed experts in {experts}"
        width = {"scheme": scheme, "routed_experts": _at(experts).routed_experts}
        stored, names[1] = stored.model_copy(update=width), experts
    return Served(stored, names[0], names[1] if sparse else None)


def _at(precision: str) -> Stored:
    if precision == "fp8_block":
        return at_precision("fp8").model_copy(update={"scheme": BLOCKS})
    for known in BITS:
        if precision == known:
            return at_precision(known)
    raise InputError([Complaint("--weights", "", "is no known precision", precision)])


def _blocked(precision: str, stored: Stored) -> str:
    """FP8 in blocks is another kernel than FP8 with one scale."""
    return "fp8_block" if precision == "fp8" and "fp8 in blocks" in stored.scheme else precision


def _cache(model: Architecture, cache: str | None) -> str:
    if cache is not None:
        return cache
    return "fp8" if model.stored is not None and model.stored.kv_cache == 8 else "bf16"


def _versions(tables: Silicon) -> dict[str, str]:
    read = tables.read(tables.engine, "gemm")
    engine = {tables.engine: read[0].version} if read else {}
    return {PACKAGE: package_version(), **engine}
