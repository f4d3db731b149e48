"""How a model fits GPUs, as tables."""

from collections.abc import Callable

from capplan.records.anatomy import Drafter, Fit, Layout, Remedy, Ridge, Share
from capplan.report import numbers
from capplan.report.layout import Note, Table

Cell = Callable[[Share], str]


def tables(fit: Fit, context_tokens: int) -> tuple[Table, ...]:
    """Layouts side by side, ridges, remedies."""
    found = [_layouts(fit, context_tokens), _ridges(fit)]
    if fit.remedies:
        found.append(_remedies(fit))
    return tuple(found)


def notes(fit: Fit) -> tuple[Note, ...]:
    """Why each batch turns compute-bound where it does, and which layouts cannot be."""
    refused = [f"{_name(one)}: {why}" for one in fit.others for why in one.refused]
    drafter = () if fit.drafter is None else (_drafter(fit.drafter),)
    binds = {
        True: "Memory binds: the batch that fits is below the one where arithmetic takes over.",
        False: "Memory does not bind: arithmetic takes over below the batch that fits.",
        None: "The fleet does not give the rates that would tell whether memory binds.",
    }[fit.memory_binds]
    return (
        Note("Verdict", (binds,)),
        Note("Drafter", drafter),
        Note("Ridges", tuple(f"{one.part}: {one.reason}" for one in fit.ridges)),
        Note("Layouts that cannot be", tuple(refused)),
    )


def _name(layout: Layout) -> str:
    name = f"tp{layout.tp}" if layout.ep == 1 else f"tp{layout.tp} ep{layout.ep}"
    return name if layout.copies == 1 else f"{name} x{layout.copies}"


def _layouts(fit: Fit, context_tokens: int) -> Table:
    shown = [(one, one.share) for one in (fit.asked, *fit.others) if one.share is not None]
    shares = [share for _, share in shown]
    rows: list[tuple[str, Cell]] = [
        (
            f"usable of {numbers.size(fit.memory_bytes)}",
            lambda _: numbers.size(fit.usable_bytes),
        ),
        ("weights a GPU", lambda one: numbers.size(one.weights_bytes)),
        (" attention", lambda one: numbers.size(one.attention_bytes)),
    ]
    if any(share.experts_per_gpu for share in shares):
        rows += [
            (" routed experts", lambda one: numbers.size(one.experts_bytes)),
            ("experts a GPU, a layer", _experts),
        ]
    if fit.drafter is not None:
        rows.append((f"{fit.drafter.name} a GPU", lambda one: numbers.size(one.drafter_bytes or 0)))
    rows += [
        ("cache a token, a GPU", lambda one: numbers.size(one.kv_bytes_per_token)),
        (f"sequences of {context_tokens:,}", lambda one: numbers.count(one.sequences)),
    ]
    if fit.drafter is not None:
        label = f" with {fit.drafter.name}, {fit.drafter.draft_tokens} drafted"
        rows.append((label, lambda one: numbers.count(one.sequences_with_drafter or 0)))
    cells = tuple((label, *(cell(share) for share in shares)) for label, cell in rows)
    return Table(
        title=f"On {fit.gpus} x {fit.gpu}" + (": TP against EP" if len(shown) > 1 else ""),
        columns=("", *(_name(one) for one, _ in shown)),
        rows=(*cells, *_messages(shares)),
    )


def _experts(share: Share) -> str:
    if share.expert_slices == 1:
        return f"{share.experts_per_gpu} whole"
    return f"{share.experts_per_gpu} x 1/{share.expert_slices}"


def _messages(shares: list[Share]) -> tuple[tuple[str, ...], ...]:
    """A pair of rows for each pattern: how many a layer, and bytes a token over all layers."""
    patterns = dict.fromkeys(one.pattern for share in shares for one in share.messages)
    rows = []
    for pattern in patterns:
        sent = [[one for one in share.messages if one.pattern == pattern] for share in shares]
        counts = [", ".join(f"{m.count} in {m.layers}" for m in one) for one in sent]
        sizes = [sum(m.layers * m.bytes_per_token for m in one) for one in sent]
        rows.append((f"{pattern}s, layers", *(text or numbers.ABSENT for text in counts)))
        shown = (numbers.size(size) if size else numbers.ABSENT for size in sizes)
        rows.append((" payload a token", *shown))
    return tuple(rows)


def _ridges(fit: Fit) -> Table:
    drafted = fit.drafter is not None
    return Table(
        title="Batch where it turns compute-bound",
        columns=("", "plain", *(("drafting",) if drafted else ())),
        rows=tuple(
            (one.part, _batch(one.batch, one), *((_batch(one.batch_with_drafter, one),) * drafted))
            for one in fit.ridges
        ),
    )


def _batch(batch: float | None, ridge: Ridge) -> str:
    if batch is not None:
        return numbers.count(batch)
    return "see below" if "at any batch" in ridge.reason or "fleet" in ridge.reason else "never"


def _remedies(fit: Fit) -> Table:
    return Table(
        title="What makes room for more sequences",
        columns=("", "sequences", "gained"),
        rows=tuple(_remedy(one) for one in fit.remedies),
    )


def _remedy(one: Remedy) -> tuple[str, ...]:
    waits = "" if one.waits_s is None else f"; a step waits {numbers.time(one.waits_s)}"
    return f"{one.lever}: {one.change}{waits}", numbers.count(one.sequences), f"+{one.gained:,}"


def _drafter(one: Drafter) -> str:
    placed = "all of it on every GPU" if one.whole else "split as the model is"
    return (
        f"{one.name}: {numbers.parameters(one.parameters)} parameters, "
        f"{numbers.size(one.weights_bytes)}, {numbers.size(one.kv_bytes_per_token)} of cache a "
        f"token; {placed}"
    )
