"""Where each number of a plan comes from, and which defaults it used."""

from pydantic import BaseModel

from capplan.physics.surface import Surface
from capplan.planner.surfaces import Surfaces
from capplan.records.acceptance import Acceptance
from capplan.records.caveat import Caveat, Origin
from capplan.records.fleet import Fleet
from capplan.records.forecast import Forecast
from capplan.records.plan import Default, OriginLine, PolicyPlan, PoolPlan
from capplan.records.profile import Profile
from capplan.records.service import OperatingPoint


def origins(
    forecast: Forecast,
    profiles: dict[str, Profile],
    fleet: Fleet,
    policies: tuple[PolicyPlan, ...],
) -> tuple[OriginLine, ...]:
    """One line a quantity, profile by profile, for the profiles that the policies chose."""
    lines = [_traffic(forecast)]
    pools = [pool for plan in policies for pool in plan.pools]
    used = {pool.service.profile: pool for pool in pools}
    for name, pool in used.items():
        lines += _profile_lines(profiles[name], pool)
    drafters = {
        (pool.service.profile, pool.service.drafter)
        for pool in pools
        if pool.service.drafter is not None
    }
    for name, drafter in sorted(drafters):
        lines += _drafter_lines(forecast, profiles[name], str(drafter))
    return (
        *lines,
        _percentiles(pools, list(profiles.values())),
        OriginLine(
            quantity="hardware, site, prices",
            kind="given",
            text=f"fleet {fleet.name}, which names a source for each number",
        ),
    )


def _percentiles(pools: list[PoolPlan], profiles: list[Profile]) -> OriginLine:
    if all(pool.service.capacity_origin == "simulated" for pool in pools):
        text = "requests run one by one through the step times above; other hours by the balance"
        return OriginLine(quantity="latency percentiles", kind="simulated", text=text)
    kinds = ", ".join(sorted({profile.tail.origin.kind for profile in profiles}))
    return OriginLine(
        quantity="latency percentiles",
        kind="modelled",
        text=f"from means, a stated tail factor ({kinds}) and simple queues; not simulated",
    )


def _traffic(forecast: Forecast) -> OriginLine:
    source = forecast.source
    return OriginLine(
        quantity="traffic",
        kind="given",
        text=forecast.name if source is None else source.what,
        sources=() if source is None else (source.where,),
    )


def _profile_lines(profile: Profile, pool: PoolPlan) -> list[OriginLine]:
    lines = [
        _step_line(profile, pool.at_peak),
        _line("prefill and mixed steps", profile.mixed.origin or profile.origin),
        _line("memory", profile.memory.origin),
    ]
    if profile.power is not None:
        lines.append(_line("power, idle and in steps", profile.power.origin))
    return lines


def _step_line(profile: Profile, point: OperatingPoint) -> OriginLine:
    origin = profile.steps.origin or profile.origin
    step = Surfaces.of(profile, None).step
    if step.has(point.batch, point.context_tokens, point.draft_tokens + 1):
        return _line("step times", origin)
    place = (
        f"batch {_between(step, 0, point.batch)}, context {_between(step, 1, point.context_tokens)}"
    )
    line = _line("step times", origin)
    between = f"between {origin.kind} cells ({place})"
    return OriginLine(
        quantity=line.quantity,
        kind="interpolated",
        text=f"{between}. {line.text}" if line.text else between,
        sources=line.sources,
    )


def _between(surface: Surface, axis: int, value: float) -> str:
    below = [point for point in surface.axes[axis] if point <= value]
    above = [point for point in surface.axes[axis] if point >= value]
    ends = dict.fromkeys([below[-1] if below else above[0], above[0] if above else below[-1]])
    return " to ".join(f"{end:.0f}" for end in ends)


def _drafter_lines(forecast: Forecast, profile: Profile, name: str) -> list[OriginLine]:
    drafter = profile.drafters[name]
    lines = [_line(f"drafting ({name})", drafter.draft.origin or drafter.origin)]
    for traffic in forecast.classes:
        own = (traffic.acceptance or {}).get(name)
        table: Acceptance | None = own or drafter.acceptance.get(traffic.acceptance_workload or "")
        if table is not None:
            lines.append(_line(f"acceptance of {traffic.name}", table.origin))
    return lines


def _line(quantity: str, origin: Origin) -> OriginLine:
    parts = [origin.machine, origin.note]
    return OriginLine(
        quantity=quantity,
        kind=origin.kind,
        text=". ".join(part.rstrip(".") for part in parts if part),
        sources=tuple(dict.fromkeys(source.where for source in origin.sources)),
    )


def defaults(forecast: Forecast, fleet: Fleet) -> tuple[Default, ...]:
    """Values that the forecast and the fleet left out."""
    return (
        *(Default(file="forecast", key=k, value=v) for k, v in _unset(forecast, "")),
        *(Default(file="fleet", key=k, value=v) for k, v in _unset(fleet, "")),
    )


def _unset(record: BaseModel, prefix: str) -> list[tuple[str, str]]:
    found = []
    for name in type(record).model_fields:
        value = getattr(record, name)
        key = f"{prefix}{name}"
        if name not in record.model_fields_set and isinstance(value, BaseModel):
            found += [(f"{key}.{k}", str(v)) for k, v in value.model_dump().items()]
        elif name not in record.model_fields_set and isinstance(value, int | float | str):
            found.append((key, str(value)))
        elif isinstance(value, BaseModel):
            found += _unset(value, f"{key}.")
        elif isinstance(value, tuple):
            for place, item in enumerate(value):
                if isinstance(item, BaseModel):
                    label = getattr(item, "name", place)
                    found += _unset(item, f"{key}.{label}.")
    return found


def caveats(forecast: Forecast, fleet: Fleet, profiles: list[Profile]) -> list[Caveat]:
    """What the files themselves warn of."""
    return [
        *(Caveat(about="forecast", text=text) for text in forecast.caveats),
        *(caveat for profile in profiles for caveat in profile.caveats),
        *(Caveat(about="fleet", text=text) for text in fleet.caveats),
    ]
