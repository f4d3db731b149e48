"""Operating points: what one deployment of one model was seen to do."""

from typing import Literal, Self

from pydantic import Field, model_validator

from capplan.records.acceptance import Acceptance, DrafterKind
from capplan.records.base import Record
from capplan.records.caveat import Caveat, Origin
from capplan.records.fit import Fit
from capplan.records.routing import Routing
from capplan.units import (
    AtLeastOne,
    Bytes,
    BytesPerSequence,
    BytesPerToken,
    Count,
    GpuWatts,
    MeanCount,
    Parameters,
    PositiveBytesPerToken,
    PositiveCount,
    PositiveSeconds,
    Seconds,
    SmallCount,
    SmallRatio,
    Tokens,
)


class ProfiledModel(Record):
    """The model that was measured."""

    name: str
    parameters_total: Parameters
    parameters_active: Parameters
    kv_bytes_per_token: PositiveBytesPerToken
    """Keys and values of one token over all layers, summed over the replica's GPUs."""


class Deployment(Record):
    """How the model was laid out."""

    gpu: str
    gpus_per_replica: SmallCount
    parallelism: str
    """Such as tp8, tp8-ep8."""
    weight_precision: str
    kv_precision: str
    engine: str
    version: str
    flags: tuple[str, ...] = ()
    graphs: bool | None = None
    """Steps replayed as CUDA graphs."""
    power_cap_w: GpuWatts | None = None
    clocks: str | None = None


class _Timed(Record):
    """A median time with its interval."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        values = self.model_dump()
        time = values.get("step_s", values.get("draft_s"))
        low, high = values["low_s"], values["high_s"]
        if (low is not None and low > time) or (high is not None and high < time):
            raise ValueError("low_s must not exceed the time, and high_s must not stay below it")
        return self


class StepCell(_Timed):
    """One step of the target alone: decode where query_tokens is 1, else verification."""

    batch: SmallCount
    context_tokens: Count
    query_tokens: PositiveCount
    """Tokens a sequence that the step processes: draft_tokens + 1."""
    step_s: PositiveSeconds
    low_s: PositiveSeconds | None = None
    high_s: PositiveSeconds | None = None
    runs: PositiveCount | None = None
    power_w: GpuWatts | None = None
    """Mean power of one GPU during the step."""
    distinct_experts: MeanCount | None = None
    """Distinct routed experts that the step touches, mean over MoE layers."""


class MixedCell(_Timed):
    """A step that carries a prefill chunk beside the decoding batch."""

    batch: SmallCount
    context_tokens: Count
    query_tokens: PositiveCount
    prefill_tokens: PositiveCount
    step_s: PositiveSeconds
    low_s: PositiveSeconds | None = None
    high_s: PositiveSeconds | None = None
    runs: PositiveCount | None = None


class PrefillCell(_Timed):
    """A prefill chunk alone."""

    tokens: PositiveCount
    cached_tokens: Count
    """Context of the same prompt that is already in the cache."""
    step_s: PositiveSeconds
    low_s: PositiveSeconds | None = None
    high_s: PositiveSeconds | None = None
    runs: PositiveCount | None = None
    power_w: GpuWatts | None = None


class DraftCell(_Timed):
    """Drafting of one round."""

    batch: SmallCount
    draft_tokens: PositiveCount
    draft_s: Seconds
    low_s: Seconds | None = None
    high_s: Seconds | None = None
    runs: PositiveCount | None = None


def _distinct(rows: tuple[Record, ...], *keys: str) -> None:
    seen: set[tuple[int, ...]] = set()
    for row in rows:
        place = tuple(getattr(row, key) for key in keys)
        if place in seen:
            where = ", ".join(f"{key} {value}" for key, value in zip(keys, place, strict=True))
            raise ValueError(f"two rows stand for {where}")
        seen.add(place)


class StepTable(Record):
    """Decode and verification steps."""

    origin: Origin | None = None
    rows: tuple[StepCell, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _rows_differ(self) -> Self:
        _distinct(self.rows, "batch", "context_tokens", "query_tokens")
        return self


class MixedTable(Record):
    """Steps with a prefill chunk."""

    origin: Origin | None = None
    rows: tuple[MixedCell, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _rows_differ(self) -> Self:
        _distinct(self.rows, "batch", "context_tokens", "query_tokens", "prefill_tokens")
        return self


class PrefillTable(Record):
    """Prefill chunks alone."""

    origin: Origin | None = None
    rows: tuple[PrefillCell, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _rows_differ(self) -> Self:
        _distinct(self.rows, "tokens", "cached_tokens")
        return self


class DraftTable(Record):
    """Drafting times."""

    origin: Origin | None = None
    rows: tuple[DraftCell, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _rows_differ(self) -> Self:
        _distinct(self.rows, "batch", "draft_tokens")
        return self


class Drafter(Record):
    """What proposes tokens, what that costs, and how often it is right."""

    kind: DrafterKind
    description: str
    memory_bytes: Bytes
    """Drafter weights, summed over the replica's GPUs."""
    kv_bytes_per_token: BytesPerToken
    loaded_idle_overhead: SmallRatio
    """Part by which a plain step is slower while the drafter is loaded but not used."""
    draft: DraftTable
    acceptance: dict[str, Acceptance] = Field(min_length=1)
    origin: Origin


class Memory(Record):
    """What fits."""

    kv_capacity_tokens: Tokens
    """Tokens of KV cache of one replica without a drafter."""
    weights_bytes: Bytes
    """Summed over the replica's GPUs."""
    state_bytes_per_sequence: BytesPerSequence
    origin: Origin


class Limits(Record):
    """What the engine was told."""

    max_batch: SmallCount
    max_batched_tokens: PositiveCount
    """Token budget of one step, verify and prefill tokens together."""
    drafts_by_request: bool = False
    """Whether the engine can leave single requests undrafted in a step that verifies others'
    drafts."""


class IdlePower(Record):
    """Power of a GPU that holds the model and does nothing."""

    idle_w: GpuWatts
    origin: Origin


class Tail(Record):
    """Stand-in for a simulation of the load: how far percentiles lie above means."""

    tpot_p99_over_mean: dict[Literal["plain", "speculative"], AtLeastOne] = Field(min_length=2)
    """From fluctuation of the load alone; the luck of acceptance is computed, not included."""
    origin: Origin


class Profile(Record):
    """One model, one layout, one GPU type: everything a plan takes from measurement."""

    version: Literal[1]
    name: str
    model: ProfiledModel
    deployment: Deployment
    origin: Origin
    steps: StepTable
    mixed: MixedTable
    prefill: PrefillTable
    drafters: dict[str, Drafter] = {}
    memory: Memory
    limits: Limits
    power: IdlePower | None = None
    """None where no meter was read: plans from it say nothing of power."""
    tail: Tail
    fit: Fit | None = None
    """Of the steps; None where nobody fitted them. Plans read the points, not the fit."""
    routing: Routing | None = None
    """How tokens of real text chose experts, where that was looked at."""
    caveats: tuple[Caveat, ...] = ()
