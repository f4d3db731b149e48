"""Points of `published_points.yaml`: one mapping a measurement, null where the source is silent."""

from pathlib import Path

from capplan.errors import Complaint, InputError
from capplan.importers.published import words
from capplan.importers.published.fields import Fields, rows
from capplan.importers.published.source import source_file
from capplan.records.published import PublishedRound


def read_points(path: Path) -> tuple[PublishedRound, ...]:
    """Rounds of a file of points that tell a ratio.

    `mean_accepted_len` counts the bonus token, `verify_tokens` is gamma + 1 unless a tree says
    otherwise, and `derived.cycle_over_decode` is a whole round over a plain step.

    Args:
        path: The file.

    Raises:
        InputError: The file is no YAML, or has rows that are not as the format says; all by line.
    """
    source = source_file(path)
    found, complaints = rows(source.tree, "points", source.place)
    points = [_point(row) for row in found]
    named = [row for row in found if not row.tree.get("id")]
    complaints += [Complaint(row.here, "id", "must be given") for row in named]
    if complaints:
        raise InputError(complaints)
    return tuple(point for point in points if point.tells)


def _point(row: Fields) -> PublishedRound:
    model, hardware, engine = row.text("model"), row.text("hardware"), row.text("engine")
    measured, note = row.text("measured"), row.text("note")
    gpu, gpus = words.gpu(hardware)
    tree = words.tree(measured, engine)
    draft_tokens = row.count("gamma")
    name = str(row.tree.get("id"))
    return PublishedRound(
        name=name,
        place=row.here,
        source=row.text("source_url"),
        model=model,
        sparse=row.count("experts") is not None or words.sparse(model),
        gpu=gpu,
        gpus=gpus,
        engine=words.engine(engine),
        weights=words.weights(model, hardware, engine),
        batches=words.batches(row.tree.get("batch"), measured),
        passes=tree.passes if tree else draft_tokens,
        beams=tree.beams if tree else 1,
        query_tokens=row.count("verify_tokens"),
        tokens_per_round=row.number("mean_accepted_len"),
        drafter=words.drafter(measured, engine, note, hardware),
        plain_s=_plain_s(row, measured, note),
        context_tokens=words.context(row.part("extra").tree.get("context")),
        speed_up=row.number("speedup"),
        cycle_ratio=row.part("derived").number("cycle_over_decode"),
    )


def _plain_s(row: Fields, *texts: str | None) -> float | None:
    """Of tokens/s over the whole batch; other units are rarely told, and not guessed."""
    rate, batch = row.number("t_ar"), row.tree.get("batch")
    if rate is None or not isinstance(batch, int):
        return None
    return batch / rate if any("tok/s" in t or "tokens/s" in t for t in texts if t) else None
