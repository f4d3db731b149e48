"""Whether a profile covers what a forecast asks of it: refused before anything is computed."""

import numpy as np

from capplan.errors import Complaint
from capplan.physics.doubtful import impossible_steps
from capplan.physics.surface import Surface
from capplan.planner.load import Load
from capplan.planner.surfaces import Surfaces
from capplan.records.caveat import Caveat
from capplan.records.plan import Demand
from capplan.records.profile import Profile

_STEP = ("batch", "context_tokens", "query_tokens")


def complaints(profile: Profile, demand: Demand, load: Load, surfaces: Surfaces) -> list[Complaint]:
    """Tables with holes inside, and contexts and prompts beyond the measured ones."""
    found = _tables(profile, surfaces)
    found += _prompts(profile, demand, "prompts were measured", surfaces.prefill.axes[1][-1])
    if load.handover is not None:
        there, held = load.handover.profile, "a prefill engine's cache holds prompts"
        longest = load.handover.surfaces.prefill.axes[1][-1]
        found += _prompts(there, demand, "prompts were measured", longest)
        found += _prompts(there, demand, held, there.memory.kv_capacity_tokens)
    for place in range(len(demand.classes)):
        resident = float(load.resident_tokens[place])
        if resident > (known := surfaces.step.axes[1][-1]):
            key, what = f"classes.{place}.input_tokens", "mean contexts were measured"
            found.append(_beyond(profile, demand, key, what, known, resident))
    return list(dict.fromkeys(found))


def _prompts(profile: Profile, demand: Demand, what: str, most: float) -> list[Complaint]:
    """Prompts that may be longer than what is known."""
    return [
        _beyond(
            profile,
            demand,
            f"classes.{place}.input_tokens.max_tokens",
            what,
            most,
            traffic.max_prompt_tokens,
        )
        for place, traffic in enumerate(demand.classes)
        if traffic.max_prompt_tokens > most
    ]


def _tables(profile: Profile, surfaces: Surfaces) -> list[Complaint]:
    found = [
        Complaint(f"profile {profile.name}", key, "must hold plain decoding, query_tokens 1")
        for key, surface in (("steps", surfaces.step), ("mixed", surfaces.increment))
        if 1 not in surface.axes[2]
    ]
    for key, names, surface in (
        ("steps", _STEP, surfaces.step),
        ("mixed", (*_STEP, "prefill_tokens"), surfaces.increment),
        ("prefill", ("tokens", "cached_tokens"), surfaces.prefill),
        ("draft", ("batch", "draft_tokens"), surfaces.draft),
    ):
        hole = None if surface is None else _hole(surface)
        if hole is not None:
            cell = ", ".join(f"{n} {v:.0f}" for n, v in zip(names, hole, strict=True))
            rule = f"must be a grid with holes at its far end only: {cell} is missing"
            if key == "mixed":
                rule += ", here or in steps"
            found.append(Complaint(f"profile {profile.name}", key, rule))
    return found


def _hole(surface: Surface) -> list[float] | None:
    """A missing point that has a measured one beyond it along some axis."""
    known = np.isfinite(surface.values)
    for axis in range(known.ndim):
        line = np.moveaxis(known, axis, 0)
        places = np.argwhere(np.moveaxis(~line[:-1] & line[1:], 0, axis))
        if len(places):
            first = zip(surface.axes, places[0], strict=True)
            return [float(coordinates[place]) for coordinates, place in first]
    return None


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
                f"{shortest:.0f} tokens, whose step times stand in",
            )
        )
    fewest = surfaces.step.axes[0][0]
    if fewest > 1:
        text = f"smaller batches than {fewest:.0f} were not measured; its step times stand in"
        found.append(Caveat(about="batch", text=text))
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
    found = []
    if free:
        text = f"{free} of {len(rows)} mixed steps are faster than the same step without a chunk"
        found.append(Caveat(about="mixed steps", text=f"{text}; counted as free"))
    steps = profile.steps.rows
    for wrong, count in impossible_steps(steps).items():
        text = f"{count} of {len(steps)} steps {wrong}, which cannot be; used as they stand"
        found.append(Caveat(about="steps", text=text))
    return found


def _beyond(
    profile: Profile, demand: Demand, key: str, what: str, known: float, asked: float
) -> Complaint:
    return Complaint(
        place=f"forecast {demand.forecast}",
        key=key,
        rule=f"{what} up to {known:.0f} tokens in profile {profile.name}",
        found=f"{asked:.0f}",
        remedy="shorten what the class may ask for, or measure longer contexts",
    )
