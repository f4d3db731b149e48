"""Dollars of a fleet that stands for the whole forecast."""

from capplan.planner.demand import output_tokens, prompt_tokens
from capplan.records.fleet import Fleet
from capplan.records.plan import Cost, Demand, Placement, PowerDraw

_HOUR_S = 3600.0
_J_PER_KWH = 3.6e6
_MILLION = 1e6


def cost(
    demand: Demand, placement: Placement, power: PowerDraw | None, fleet: Fleet, gpu: str
) -> Cost | None:
    """What the fleet costs an hour and a token; None where its energy is paid but not known."""
    price = fleet.prices[gpu]
    energy_usd_per_hour = 0.0
    if not price.energy_included:
        if power is None:
            return None
        hourly_j = power.mean_facility_w * _HOUR_S
        energy_usd_per_hour = hourly_j / _J_PER_KWH * fleet.site.energy_usd_per_kwh
    hourly = placement.gpus * price.hold_usd_per_gpu_hour + energy_usd_per_hour
    hours = len(demand.classes[0].rate_per_s) * demand.step_s / _HOUR_S
    output = output_tokens(demand)
    return Cost(
        total_usd_per_hour=hourly,
        energy_usd_per_hour=energy_usd_per_hour,
        output_usd_per_million_tokens=hourly * hours / output * _MILLION,
        blended_usd_per_million_tokens=hourly * hours / (output + prompt_tokens(demand)) * _MILLION,
    )
