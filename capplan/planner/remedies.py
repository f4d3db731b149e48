"""What makes room for more sequences when memory ends the batch."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from capplan.physics.draft_model import DraftModel
from capplan.physics.precision import arithmetic, formats
from capplan.physics.sharding import Split, broken_rules
from capplan.planner.setup import Setup
from capplan.records.anatomy import Remedy
from capplan.records.architecture import Moe
from capplan.records.fleet import Gpu

SHORTEST: Final = 256
"""No context is halved below it. [tokens]"""


HOST_SHARE: Final = 0.25
"""Part of the routed experts that may lie in host memory."""


@dataclass(frozen=True)
class Alternatives:
    """What else could be had."""

    gpus: Mapping[str, Gpu]
    """Other kinds, by name."""
    drafters: tuple[DraftModel, ...] = field(default=())
    """For the same model."""


def remedies(setup: Setup, others: Alternatives) -> tuple[Remedy, ...]:
    """Changes that gain sequences, one of each kind, the most gained first.

    Args:
        setup: As it was asked for, with its drafter where there is one.
        others: GPUs and drafters to choose from; the number of GPUs stays.
    """
    before = setup.sequences()
    best: dict[str, Remedy] = {}
    for lever, change, other in _changes(setup, others):
        after = other.sequences()
        row = Remedy.model_validate(
            {
                "lever": lever,
                "change": change,
                "sequences": after,
                "gained": after - before,
                "waits_s": other.waits_s(after),
            }
        )
        if row.gained > best.get(lever, row.model_copy(update={"gained": 0})).gained:
            best[lever] = row
    return tuple(sorted(best.values(), key=lambda row: -row.gained))


Change = tuple[str, str, Setup]


def _changes(setup: Setup, others: Alternatives) -> Iterator[Change]:
    if setup.kv_bytes_per_value > 1:
        yield "kv precision", "--kv-precision fp8", replace(setup, kv_bytes_per_value=1.0)
    yield from _layouts(setup)
    yield from _drafting(setup, others)
    yield from _host_memory(setup)
    half = setup.context_tokens // 2
    if half >= SHORTEST:
        yield "context", f"--context {half}", replace(setup, context_tokens=half)
    for name, gpu in others.gpus.items():
        other = replace(setup, gpu=gpu)
        runs = all(arithmetic(one, gpu) for one in formats(setup.stored).values())
        if runs and other.weights_fit():
            yield "gpu", f"--on {name}:{setup.split.gpus}", other


def _layouts(setup: Setup) -> Iterator[Change]:
    gpus = setup.split.gpus
    divisors = [size for size in range(1, gpus + 1) if gpus % size == 0]
    for tensor in divisors:
        for expert in {1, gpus}:
            split = Split(gpus, tensor, expert)
            other = replace(setup, split=split)
            broken = broken_rules(setup.architecture.layer_kinds, split)
            if split != setup.split and not broken and other.weights_fit():
                yield "layout", f"--tp {tensor} --ep {expert}", other


def _host_memory(setup: Setup) -> Iterator[Change]:
    """Experts where a fleet gives the link to them: dear, and told with what a step waits."""
    sparse = any(isinstance(kind.feed_forward, Moe) for kind in setup.kinds)
    if sparse and setup.gpu.host_bytes_per_s is not None:
        change = f"{HOST_SHARE:.0%} of the routed experts there"
        yield "host memory", change, replace(setup, host_share=HOST_SHARE)


def _drafting(setup: Setup, others: Alternatives) -> Iterator[Change]:
    if setup.drafter is None:
        return
    yield "drafter", "--drafter none", setup.plain()
    for other in others.drafters:
        if other.weights_bytes() < setup.drafter.weights_bytes():
            yield "smaller drafter", f"--drafter {other.name}", replace(setup, drafter=other)
    if setup.draft_tokens > 1:
        yield "look-ahead", "--draft-tokens 1", replace(setup, draft_tokens=1)
