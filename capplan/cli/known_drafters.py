"""The drafter that an option means, with what is published of its acceptance."""

from typing import Final

from capplan.cli import models
from capplan.composer.wanted import Drafting
from capplan.errors import Complaint, InputError
from capplan.files.catalogue import find, names
from capplan.files.reader import read
from capplan.physics import draft_model
from capplan.physics.draft_model import DraftModel
from capplan.records.architecture import Architecture
from capplan.records.drafter_model import DrafterModel
from capplan.records.known_drafter import KnownDrafter
from capplan.records.stored import Stored

BUILT_IN: Final = "mtp"
NONE: Final = "none"


def drafting(name: str | None, model: Architecture, stored: Stored) -> Drafting | None:
    """The drafter of a composed profile.

    Args:
        name: `mtp`, `none`, a known drafter, a model or a drafter's file; None for the model's own
            head, else a drafter that is known for it, else none.
        model: What it drafts for.
        stored: Widths of the model's weights.

    Raises:
        InputError: There is no such drafter, or it drafts for another vocabulary.
    """
    known = [read(find("drafters", one), KnownDrafter) for one in names("drafters")]
    found = None if name == NONE else _model(name, model, stored, known)
    if found is None:
        return None
    own = [one for one in known if model.name in one.drafts_for and _is(one, found)]
    curves = [curve for one in own for curve in one.curves]
    thinking = sorted(curves, key=lambda curve: curve.thinking is not True)
    others = tuple(curve for one in known for curve in one.curves)
    return Drafting(found, tuple(thinking), others)


def _is(known: KnownDrafter, model: DraftModel) -> bool:
    name = BUILT_IN if known.drafter is None else known.drafter.name
    return name == model.name


def _model(
    name: str | None, model: Architecture, stored: Stored, known: list[KnownDrafter]
) -> DraftModel | None:
    own = draft_model.built_in(model, stored)
    if name == BUILT_IN and own is None:
        rule = f"{model.name} has no head for multi-token prediction"
        raise InputError([Complaint("--drafter", "", rule, name)])
    if name in {None, BUILT_IN} and own is not None:
        return own
    if name is None:
        apart = [one.drafter for one in known if model.name in one.drafts_for and one.drafter]
        return draft_model.of_head(apart[0]) if apart else None
    return _named(name, model)


def _named(name: str, model: Architecture) -> DraftModel:
    found = models.draft_model(name)
    if found.vocabulary != model.vocabulary:
        rule = f"must draft for the model's vocabulary of {model.vocabulary}"
        raise InputError([Complaint("--drafter", "", rule, f"{name}: {found.vocabulary}")])
    if isinstance(found, DrafterModel):
        return draft_model.of_head(found)
    return draft_model.of_model(found)
