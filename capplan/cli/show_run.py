"""What `capplan show` was asked for, read and handed to the planner."""

import re
from dataclasses import dataclass
from typing import Final, Literal

from capplan import __version__
from capplan.cli import models
from capplan.cli.hardware import MOST_GPUS, Hardware
from capplan.cli.hardware import hardware as hardware_of
from capplan.errors import Complaint, InputError
from capplan.files.catalogue import find, names
from capplan.files.reader import read
from capplan.physics import draft_model as drafters
from capplan.physics.draft_model import DraftModel
from capplan.physics.precision import at_precision
from capplan.physics.sharding import Split
from capplan.planner.anatomy import KV_BYTES, anatomy
from capplan.planner.fit import caveats, fit
from capplan.planner.remedies import Alternatives
from capplan.planner.setup import Setup
from capplan.records.anatomy import Anatomy, KvPrecision
from capplan.records.architecture import Architecture
from capplan.records.caveat import Caveat
from capplan.records.drafter_model import DrafterModel
from capplan.records.stored import Precision, Stored

MOST_TOKENS: Final = 100_000_000
MOST_DRAFTED: Final = 64
DRAFT_TOKENS: Final = 3
"""Drafted where neither the drafter nor the user says how many."""
BUILT_IN: Final = "mtp"
NO_DRAFTER: Final = "none"
_TOKENS: Final = re.compile(r"([1-9][0-9]{0,8})([kKmM]?)")
_UNITS: Final = {"": 1, "k": 1024, "m": 1024**2}


@dataclass(frozen=True)
class Asked:
    """The command's options."""

    context: str
    precision: Precision | Literal["stored"]
    kv_precision: KvPrecision | None
    on: str | None
    tp: int | None
    ep: int | None
    drafter: str | None
    draft_tokens: int | None
    fleet: str | None


def run(model: str, asked: Asked) -> Anatomy:
    """The anatomy of a model, on GPUs where some are named.

    Raises:
        InputError: With all that is wrong with the options, or with a file.
        InfeasibleError: The weights do not fit.
    """
    _check(asked)
    context_tokens = _tokens(asked.context)
    hardware = None if asked.on is None else hardware_of(asked.on, asked.fleet)
    architecture = models.architecture(model)
    own = architecture.stored or Stored(scheme="16 bits, assumed")
    stored = own if asked.precision == "stored" else at_precision(asked.precision)
    cache: KvPrecision = asked.kv_precision or ("fp8" if own.kv_cache == 8 else "bf16")
    found = anatomy(architecture, stored, cache, context_tokens, __version__)
    if hardware is None:
        return found
    drafter = _drafter(architecture, stored, asked.drafter)
    setup = Setup(
        architecture=architecture,
        stored=stored,
        kv_bytes_per_value=KV_BYTES[cache],
        context_tokens=context_tokens,
        gpu=hardware.gpu,
        split=Split(hardware.gpus, asked.tp or hardware.gpus, asked.ep or 1),
        drafter=drafter,
        draft_tokens=0 if drafter is None else asked.draft_tokens or _made_for(drafter),
    )
    others = {name: gpu for name, gpu in hardware.fleet.gpus.items() if name != hardware.name}
    alternatives = Alternatives(others, _smaller(drafter, architecture, stored))
    return found.model_copy(
        update={
            "fit": fit(setup, hardware.name, alternatives),
            "caveats": (
                *found.caveats,
                *caveats(setup, hardware.name),
                *_across_nodes(hardware),
            ),
        }
    )


def _check(asked: Asked) -> None:
    complaints = []
    if _TOKENS.fullmatch(asked.context) is None or _tokens(asked.context) > MOST_TOKENS:
        rule = f"needs tokens from 1 to {MOST_TOKENS}, as in 8192, 8k or 1M"
        complaints.append(Complaint("--context", "", rule, repr(asked.context)))
    bounded = (
        ("--tp", asked.tp, MOST_GPUS),
        ("--ep", asked.ep, MOST_GPUS),
        ("--draft-tokens", asked.draft_tokens, MOST_DRAFTED),
    )
    for option, value, most in bounded:
        if value is not None and not 1 <= value <= most:
            rule = f"needs a whole number from 1 to {most}"
            complaints.append(Complaint(option, "", rule, str(value)))
    if asked.on is None:
        given = (*bounded, ("--drafter", asked.drafter, 0))
        complaints += [
            Complaint(option, "", "needs GPUs", str(value), "name them with --on, as h200-sxm:8")
            for option, value, _ in given
            if value is not None
        ]
    if complaints:
        raise InputError(complaints)


def _tokens(text: str) -> int:
    found = _TOKENS.fullmatch(text)
    return 0 if found is None else int(found[1]) * _UNITS[found[2].lower()]


def _across_nodes(hardware: Hardware) -> tuple[Caveat, ...]:
    held = [one.gpus for one in hardware.fleet.nodes.values() if one.gpu == hardware.name]
    if not held or hardware.gpus <= held[0]:
        return ()
    text = f"{hardware.gpus} GPUs are more than the {held[0]} of a node: they travel between nodes"
    return (Caveat(about="messages", text=text),)


def _drafter(architecture: Architecture, stored: Stored, name: str | None) -> DraftModel | None:
    own = drafters.built_in(architecture, stored)
    if name is None or name == NO_DRAFTER:
        return own if name is None else None
    if name == BUILT_IN:
        if own is None:
            rule = f"{architecture.name} has no head for multi-token prediction"
            raise InputError([Complaint("--drafter", "", rule, name)])
        return own
    named = models.draft_model(name)
    if named.vocabulary != architecture.vocabulary:
        rule = f"must draft for the model's vocabulary of {architecture.vocabulary}"
        raise InputError([Complaint("--drafter", "", rule, f"{name}: {named.vocabulary}")])
    return drafters.of_head(named) if isinstance(named, DrafterModel) else drafters.of_model(named)


def _made_for(drafter: DraftModel) -> int:
    made_for = None if drafter.head is None else drafter.head.draft_tokens
    return min(made_for or DRAFT_TOKENS, MOST_DRAFTED)


def _smaller(
    drafter: DraftModel | None, architecture: Architecture, stored: Stored
) -> tuple[DraftModel, ...]:
    """What else may draft: the model's own head, or known models of the same vocabulary."""
    own = drafters.built_in(architecture, stored)
    found = [] if own is None else [own]
    if drafter is not None and drafter.model is not None:
        known = (read(find("models", name), Architecture) for name in names("models"))
        same = [one for one in known if one.vocabulary == architecture.vocabulary]
        found += [drafters.of_model(one) for one in same]
    return tuple(found)
