"""Whether a profile covers what a forecast asks of it: refused before anything is computed."""

import numpy as np

from capplan.errors import Complaint, InputError
from capplan.planner.load import Load
from capplan.planner.surfaces import Surfaces
from capplan.records.caveat import Caveat
from capplan.records.profile import Profile


def check(profile: Profile, load: Load, surfaces: Surfaces) -> None:
    """Refuses contexts and prompts beyond the measured ones.

    Raises:
        InputError: Naming what to measure.
    """
    complaints = []
    for place, name in enumerate(load.names):
        longest = float((load.prefill_tokens[place] + load.cached_tokens[place]).max())
        if longest > (known := surfaces.prefill.axes[1][-1]):
            complaints.append(_beyond(profile, name, "prefill.cached_tokens", known, longest))
        resident = float(load.resident_tokens[place])
        if resident > (known := surfaces.step.axes[1][-1]):
            complaints.append(_beyond(profile, name, "steps.context_tokens", known, resident))
    if 1 not in surfaces.step.axes[2]:
        complaints.append(
            Complaint(
                f"profile {profile.name}",
                "steps.query_tokens",
                "decode steps (query_tokens 1) must be measured",
            )
        )
    if complaints:
        raise InputError(complaints)


def caveats(profile: Profile, load: Load, surfaces: Surfaces) -> list[Caveat]:
    """What was read below the smallest measured point, or cannot be."""
    found = []
    shortest = surfaces.step.axes[1][0]
    below = [
        name
        for name, resident in zip(load.names, load.resident_tokens, strict=True)
        if resident < shortest
    ]
    if below:
        found.append(
            Caveat(
                about="context",
                text=f"contexts of {', '.join(below)} are below the shortest measured, "
                f"{shortest:.0f} tokens, whose step times stand in (slower, so safe)",
            )
        )
    contexts = surfaces.increment.axes[1]
    if len(contexts) == 1:
        found.append(
            Caveat(
                about="mixed steps",
                text=f"measured at a context of {contexts[0]:.0f} tokens alone",
            )
        )
    return found + _impossible(profile, surfaces)


def _impossible(profile: Profile, surfaces: Surfaces) -> list[Caveat]:
    """Points that cannot be: real tables contain them, and a plan must not hide them."""
    rows = profile.mixed.rows
    places = np.array([(r.batch, r.context_tokens, r.query_tokens) for r in rows], dtype=float)
    free = int(np.sum(surfaces.step.at(*places.T) > np.array([row.step_s for row in rows])))
    decode = surfaces.step.values[:, :, :1]
    faster = int(np.sum(surfaces.step.values[:, :, 1:] < decode))
    found = []
    if free:
        text = f"{free} of {len(rows)} mixed steps are faster than the same step without a chunk"
        found.append(Caveat(about="mixed steps", text=f"{text}; counted as free"))
    if faster:
        text = f"{faster} verification steps are faster than decoding at the same batch"
        found.append(Caveat(about="steps", text=f"{text}; used as they stand"))
    return found


def _beyond(profile: Profile, name: str, key: str, known: float, asked: float) -> Complaint:
    return Complaint(
        place=f"profile {profile.name}",
        key=key,
        rule=f"measured up to {known:.0f} tokens, class {name} needs more",
        found=f"{asked:.0f}",
        remedy="measure longer contexts, or lower the class's max_tokens",
    )
