"""What a profile is composed for, beside the deployment: memory, power, a drafter, a grid."""

import datetime as dt
from dataclasses import dataclass

from capplan.composer.asked import Asked
from capplan.physics.draft_model import DraftModel
from capplan.records.fleet import Gpu
from capplan.records.known_drafter import AcceptanceCurve
from capplan.records.stored import Stored

MOST_DRAFTS = 8


@dataclass(frozen=True)
class Drafting:
    """A drafter, and what is known of how often it is right."""

    model: DraftModel
    own: tuple[AcceptanceCurve, ...]
    """Published for this drafter and model, with thinking first."""
    others: tuple[AcceptanceCurve, ...]
    """Published for others: what is assumed where there is none of its own."""


@dataclass(frozen=True)
class Wanted:
    """A profile to compose."""

    asked: Asked
    stored: Stored
    """Widths of the weights as they are served."""
    gpu: Gpu
    drafting: Drafting | None
    date: dt.date
    versions: dict[str, str]
    """Of what the tables were read from."""
    draft_tokens: int = MOST_DRAFTS
    """Most drafts whose verification is tabulated, with a drafter or without."""
    coarse: bool = False
    """Powers of two and three contexts alone, for a small file."""
