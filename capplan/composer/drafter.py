"""A composed drafter: what drafting takes, how often it is right, what it keeps in memory."""

from capplan.composer.acceptance import acceptance
from capplan.composer.caveats import IDLE_OVERHEAD
from capplan.composer.drafting import draft_table, draft_time, kind_of
from capplan.composer.grid import Grid
from capplan.composer.room import CACHE_BYTES
from capplan.composer.wanted import Wanted
from capplan.errors import InputError
from capplan.physics.operators import Silicon
from capplan.physics.sharding import Split
from capplan.records.caveat import Origin
from capplan.records.profile import Drafter


def key_of(wanted: Wanted) -> str:
    """Kind of the drafter, as policies and reports name it."""
    assert wanted.drafting is not None
    drafter = wanted.drafting.model
    return drafter.head.kind if drafter.head is not None else drafter.name


def drafter_of(wanted: Wanted, tables: Silicon, grid: Grid) -> tuple[Drafter | None, str | None]:
    """The drafter, or why it cannot be composed."""
    drafting = wanted.drafting
    if drafting is None:
        return None, None
    model, split = drafting.model, wanted.asked.split
    try:
        time = draft_time(wanted.asked, drafting, tables)
    except InputError as error:
        return None, f"{model.name} cannot be composed: {error}"
    table = draft_table(time, grid.doubled_batches, wanted.draft_tokens, wanted.versions)
    own = model.split(split)
    per_value = CACHE_BYTES[wanted.asked.cache]
    return (
        Drafter(
            kind=kind_of(model),
            description=_described(model.name, own, split),
            memory_bytes=split.gpus * model.weights_bytes(own),
            kv_bytes_per_token=_kv_bytes(model.kv_bytes_per_token(per_value), own, split),
            loaded_idle_overhead=IDLE_OVERHEAD,
            draft=table,
            acceptance=acceptance(drafting.own, drafting.others),
            origin=Origin(kind="estimated", note="Weights and cache are counted, not read."),
        ),
        None,
    )


def _described(name: str, own: Split, split: Split) -> str:
    whole = own.gpus < split.gpus or own.tensor == 1
    return f"{name}, {'whole on every GPU' if whole else f'split over {own.tensor} GPUs'}"


def _kv_bytes(one_bytes: float, own: Split, split: Split) -> float:
    """Over the GPUs that share a sequence: a drafter that stands whole on each is kept by each."""
    return one_bytes * (split.tensor if own.gpus < split.gpus else 1)
