"""A replica whose step times are a straight line, so that answers can be had by hand."""

import datetime as dt
from collections.abc import Callable

from capplan.planner.trial import Stage
from capplan.records.acceptance import Acceptance
from capplan.records.caveat import Origin
from capplan.records.fleet import Fleet, Gpu, Node, Price, Rack, Rules, Site
from capplan.records.forecast import Forecast, Lengths, Rate, TimeAxis, TrafficClass
from capplan.records.profile import (
    Deployment,
    DraftCell,
    Drafter,
    DraftTable,
    IdlePower,
    Limits,
    Memory,
    MixedCell,
    MixedTable,
    PrefillCell,
    PrefillTable,
    Profile,
    ProfiledModel,
    StepCell,
    StepTable,
    Tail,
)
from capplan.simulator.arrivals import poisson
from capplan.simulator.replica import simulate
from capplan.simulator.split import simulate_split, starts_s

ASSUMED = Origin(kind="assumed")
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
CONTEXTS = (128, 8192)
CHUNKS = (256, 2048, 8192)


def make_profile(
    *,
    step_s: Callable[[int, int], float] = lambda batch, _: 0.010 + 0.0001 * batch,
    draft_s: Callable[[int, int], float] | None = None,
    shares: tuple[float, ...] = (0.8, 0.64, 0.512, 0.4096),
    spread: float = 0.0,
    prefill_s_per_token: float = 1e-5,
    chunk_s: float = 0.0,
    kv_capacity_tokens: float = 1e9,
    max_batch: int = 256,
    max_batched_tokens: int = 8192,
    tail: float = 1.0,
    gpus: int = 8,
    overhead: float = 0.0,
    power_w: float = 500.0,
    prefill_w: float | None = None,
) -> Profile:
    queries = range(1, len(shares) + 2)
    steps = tuple(
        StepCell(batch=b, context_tokens=c, query_tokens=q, step_s=step_s(b, q), power_w=power_w)
        for b in BATCHES
        for c in CONTEXTS
        for q in queries
    )
    mixed = tuple(
        MixedCell(
            batch=b,
            context_tokens=128,
            query_tokens=q,
            prefill_tokens=p,
            step_s=step_s(b, q) + chunk_s + prefill_s_per_token * p,
        )
        for b in BATCHES
        for q in queries
        for p in CHUNKS
    )
    prefill = tuple(
        PrefillCell(
            tokens=p,
            cached_tokens=c,
            step_s=chunk_s + prefill_s_per_token * p,
            power_w=prefill_w,
        )
        for p in CHUNKS
        for c in (0, 131072)
    )
    drafters = {}
    if draft_s is not None:
        rows = tuple(
            DraftCell(batch=b, draft_tokens=g, draft_s=draft_s(b, g))
            for b in BATCHES
            for g in range(1, len(shares) + 1)
        )
        drafters["eagle"] = Drafter(
            kind="autoregressive",
            description="test",
            memory_bytes=0.0,
            kv_bytes_per_token=0.0,
            loaded_idle_overhead=overhead,
            draft=DraftTable(rows=rows),
            acceptance={
                "chat": Acceptance(accepted_share=shares, per_request_sd=spread, origin=ASSUMED)
            },
            origin=ASSUMED,
        )
    return Profile(
        version=1,
        name="straight",
        model=ProfiledModel(
            name="toy", parameters_total=1e9, parameters_active=1e9, kv_bytes_per_token=1000.0
        ),
        deployment=Deployment(
            gpu="h200-sxm",
            gpus_per_replica=gpus,
            parallelism="tp8",
            weight_precision="fp8",
            kv_precision="bf16",
            engine="none",
            version="0",
        ),
        origin=ASSUMED,
        steps=StepTable(rows=steps),
        mixed=MixedTable(rows=mixed),
        prefill=PrefillTable(rows=prefill),
        drafters=drafters,
        memory=Memory(
            kv_capacity_tokens=kv_capacity_tokens,
            weights_bytes=1e9,
            state_bytes_per_sequence=0.0,
            origin=ASSUMED,
        ),
        limits=Limits(max_batch=max_batch, max_batched_tokens=max_batched_tokens),
        power=IdlePower(idle_w=100.0, origin=ASSUMED),
        tail=Tail(tpot_p99_over_mean={"plain": tail, "speculative": tail}, origin=ASSUMED),
    )


def make_forecast(
    *,
    rates: tuple[float, ...] = (10.0,),
    prompt: float = 100.0,
    output: float = 101.0,
    cv: float = 0.0,
    objectives: dict[str, float] | None = None,
    peak_minute_over_mean: float = 1.0,
) -> Forecast:
    return Forecast(
        version=1,
        name="toy",
        model="toy",
        time=TimeAxis(start=dt.datetime(2026, 11, 2, tzinfo=dt.UTC), step_s=3600.0),
        rate=Rate(values_per_s=rates),
        peak_minute_over_mean=peak_minute_over_mean,
        classes=(
            TrafficClass(
                name="chat",
                share=1.0,
                input_tokens=Lengths(mean_tokens=prompt, cv=cv, max_tokens=100_000.0),
                output_tokens=Lengths(mean_tokens=output, cv=cv, max_tokens=100_000.0),
                acceptance_workload="chat",
                objectives=objectives or {"ttft_p99_s": 100.0, "tpot_p99_s": 0.030},  # type: ignore[arg-type]
            ),
        ),
    )


def make_class(name: str, *, rates: tuple[float, ...], **forecast) -> TrafficClass:
    """A class with a rate of its own; lengths and objectives as `make_forecast` takes them."""
    one = make_forecast(rates=rates, **forecast)
    return one.classes[0].model_copy(update={"name": name, "share": None, "rate": one.rate})


def make_mix(*classes: TrafficClass) -> Forecast:
    return make_forecast().model_copy(update={"rate": None, "classes": classes})


def make_stage(seed: int = 1) -> Stage:
    return Stage(simulate, simulate_split, starts_s, poisson, seed)


def make_fleet(**rules: float) -> Fleet:
    return Fleet(
        version=1,
        name="toy",
        gpus={"h200-sxm": Gpu(memory_bytes=150e9, tdp_w=700.0, idle_w=75.0, sources={})},
        nodes={
            "node": Node(
                gpu="h200-sxm",
                gpus=8,
                nameplate_w=10_200.0,
                other_idle_w=1000.0,
                other_load_w=2000.0,
                rack_units=8,
                sources={},
            )
        },
        rack=Rack(power_w=40_800.0, units=42, sources={}),
        site=Site(pue=1.5, energy_usd_per_kwh=0.1, sources={}),
        prices={"h200-sxm": Price(hold_usd_per_gpu_hour=4.0, energy_included=True, sources={})},
        rules=Rules(**{"headroom": 0.0, "spare_replicas": 0, **rules}),  # type: ignore[arg-type]
    )
