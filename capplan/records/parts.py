"""Where a percentile of a latency comes from: means over the requests near it."""

from typing import Literal

from capplan.records.base import Record
from capplan.units import Fraction, Seconds, SignedSeconds

Shown = Literal["p50", "p99"]


class TtftParts(Record):
    """Parts of time to first token."""

    traffic_class: str
    percentile: Shown
    ttft_s: Seconds
    queue_s: Seconds
    """Waiting: for the running round, behind other prompts, for a slot or for cache."""
    prefill_s: Seconds
    """What the prompt's chunks take on an engine that does nothing else."""
    interference_s: Seconds
    """The rest of the steps that carried the chunks: decoding sequences and other prompts. Where
    prompts have engines of their own, the way to the decode replica and its first step."""
    preempted: Fraction
    """Part of these requests that lost their cache at some time."""


class TpotParts(Record):
    """Parts of time per output token after the first; they sum to it."""

    traffic_class: str
    percentile: Shown
    tpot_s: Seconds
    target_s: Seconds
    """Decode or verification steps, at the tokens a round that the class brings on average."""
    draft_s: Seconds
    """Drafting, likewise."""
    interference_s: Seconds
    """Prefill chunks of other requests in the same steps, likewise."""
    preemption_s: Seconds
    """Time without cache, until the answer was taken up again."""
    luck_s: SignedSeconds
    """What more rounds than the class's average took: drafts kept less often, or a last round of
    which a short answer needs only a part; negative where rounds were fewer."""
