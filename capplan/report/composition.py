"""A composed deployment, as tables."""

from collections.abc import Iterator

from capplan.records.composition import ComposedStep, Composition
from capplan.records.profile import Drafter, Profile
from capplan.report import numbers
from capplan.report.layout import Note, Report, Table


def report(found: Composition) -> Report:
    """Everything a reader of one composition is told."""
    profile = found.profile
    deployment = profile.deployment
    return Report(
        title=f"{profile.model.name} on {deployment.gpus_per_replica} x {deployment.gpu}, composed",
        subtitle=(
            f"{deployment.parallelism}, {deployment.engine} {deployment.version}",
            f"weights: {deployment.weight_precision}; cache: {deployment.kv_precision}",
            "NOT MEASURED: a sum of operator times that NVIDIA published.",
        ),
        tables=(_memory(found), *_steps(found)),
        notes=(
            Note("Reading between the tables' rows", tuple(_errors(found))),
            Note("Drafters", tuple(_drafters(profile))),
            Note("Caveats", tuple(f"{one.about}: {one.text}" for one in profile.caveats)),
        ),
    )


def _memory(found: Composition) -> Table:
    rows = [
        (f"usable of {numbers.size(found.gpu_memory_bytes)}", numbers.size(found.usable_bytes)),
        ("weights a GPU", numbers.size(found.weights_on_gpu_bytes)),
        ("cache a token, all GPUs of a copy", numbers.size(found.kv_bytes_per_token)),
        ("cache of a replica", f"{numbers.count(found.profile.memory.kv_capacity_tokens)} tokens"),
        *((f"sequences of {one.context_tokens:,}", numbers.count(one.sequences))
          for one in found.held),
    ]  # fmt: skip
    return Table(title="Memory", columns=("", "estimated"), rows=tuple(rows))


def _steps(found: Composition) -> Iterator[Table]:
    for query in dict.fromkeys(step.query_tokens for step in found.steps):
        steps = [step for step in found.steps if step.query_tokens == query]
        what = "decoding" if query == 1 else f"verifying {query - 1} drafts"
        rows = [
            ("step", *(numbers.time(step.step_s) for step in steps)),
            (" from", *(numbers.time(step.low_s) for step in steps)),
            (" to", *(numbers.time(step.high_s) for step in steps)),
            *((f" {_words(part)}", *(numbers.time(step.parts_s[part]) for step in steps))
              for part in steps[0].parts_s),
        ]  # fmt: skip
        if query > 1:
            plain = {step.batch: step for step in found.steps if step.query_tokens == 1}
            rows.append(("target efficiency", *(_efficiency(plain[s.batch], s) for s in steps)))
        yield Table(
            title=f"T(B, {query}), {what}, {steps[0].context_tokens:,} tokens of context",
            columns=("", *(f"B {step.batch}" for step in steps)),
            rows=tuple(rows),
        )


def _efficiency(plain: ComposedStep, step: ComposedStep) -> str:
    return numbers.ratio(plain.step_s / step.step_s)


def _errors(found: Composition) -> Iterator[str]:
    for part, error in found.part_error.items():
        yield f"{_words(part)}: off by {error:.1%}, median on rows left out"


def _drafters(profile: Profile) -> Iterator[str]:
    for name, drafter in profile.drafters.items():
        yield f"{name}: {drafter.description}; {numbers.size(drafter.memory_bytes)}"
        yield from _acceptance(drafter)


def _acceptance(drafter: Drafter) -> Iterator[str]:
    for workload, one in drafter.acceptance.items():
        low, middle, high = (
            1 + sum((shares or ())[:3])
            for shares in (one.low_share, one.accepted_share, one.high_share)
        )
        yield (
            f" {workload}, {one.origin.kind}: {middle:.2f} tokens a round at 3 drafts "
            f"({low:.2f} to {high:.2f})"
        )


def _words(part: str) -> str:
    return part.replace("_", "-")
