"""The run behind `capplan profile routing`: texts read, choices of experts collected."""

import datetime as dt
from collections.abc import Sequence

import numpy as np
import transformers

import capplan
from capplan.cli.progress import progress
from capplan.cli.routing_options import Asked
from capplan.errors import Complaint, InputError
from capplan.physics.overlap import Choices
from capplan.profiler import checkpoint, device
from capplan.profiler.cached import CachedModel
from capplan.profiler.checkpoint import Checkpoint
from capplan.profiler.real_text import check_real
from capplan.profiler.routing import result
from capplan.profiler.routing.answer import answer
from capplan.profiler.routing.watch import choices, experts_of
from capplan.records.caveat import Origin
from capplan.records.prompt import Prompt
from capplan.records.routing import Routing


def run(asked: Asked) -> Routing:
    """Reads every text and counts which experts its tokens choose.

    Args:
        asked: The command's arguments.

    Raises:
        InputError: The checkpoint cannot be loaded or has no experts, or texts are random or all
            too short.
    """
    machine = device.choose(None)
    model = checkpoint.load("CHECKPOINT", asked.checkpoint)
    experts = experts_of(model.model)
    for source, texts in zip(asked.sources, asked.workloads.values(), strict=True):
        check_real(model, source, texts)
    found: dict[str, list[Choices]] = {name: [] for name in asked.workloads}
    with progress("texts", sum(map(len, asked.workloads.values()))) as advance:
        for name, texts in asked.workloads.items():
            for place, text in enumerate(texts):
                found[name].append(_read(model, text, asked, place))
                advance()
    for name, source in zip(asked.workloads, asked.sources, strict=True):
        found[name] = _long_enough(source, found[name])
    answers = (
        f"answers of about {asked.max_tokens} tokens at temperature {asked.temperature:g}, seed "
        f"{asked.seed}"
        if asked.max_tokens
        else "the texts themselves"
    )
    origin = Origin(
        kind="measured",
        date=dt.datetime.now(tz=dt.UTC).date(),
        machine=machine.machine,
        versions=machine.versions
        | {"transformers": transformers.__version__, "capplan": capplan.__version__},
        note=f"{model.name}, {answers}: {', '.join(asked.sources)}",
    )
    return result.routing(found, experts, asked.seed, origin)


def _read(model: Checkpoint, text: Prompt, asked: Asked, place: int) -> Choices:
    """Choices of a text's own tokens, or of its answer's."""
    if not asked.max_tokens:
        return choices(model.model, model.plain(text.conversation))
    prompt = model.encode(text.conversation)
    reader = CachedModel(model.model, model.vocabulary)
    rng = np.random.default_rng([asked.seed, place])
    said = answer(reader, prompt, asked.max_tokens, asked.temperature, model.ends, rng)
    return choices(model.model, [*prompt, *said], first=len(prompt))


def _long_enough(source: str, found: Sequence[Choices]) -> list[Choices]:
    """Texts that reach the longest lag; some must."""
    longer = [text for text in found if len(text) > result.LAGS]
    if len(longer) < 2:
        rule = f"needs two texts or more that are longer than {result.LAGS} tokens"
        remedy = "Give longer texts, or answers with --max-tokens."
        raise InputError([Complaint(source, "", rule, str(len(longer)), remedy)])
    return longer
