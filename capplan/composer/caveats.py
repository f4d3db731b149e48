"""What a composed profile assumes, with the range of each assumption."""

from collections.abc import Iterator
from typing import Final

from capplan.composer import acceptance, power
from capplan.composer.band import experts_of
from capplan.composer.composed import LAUNCH_S, Composed
from capplan.composer.drafting import CAVEATS as DRAFTING
from capplan.composer.experts import ASSUMED
from capplan.composer.wanted import Wanted
from capplan.physics import memory
from capplan.physics.experts import Routing
from capplan.records.caveat import Caveat
from capplan.records.profile import Drafter

TAIL: Final = 1.3
TAIL_NOTE: Final = (
    f"99th percentile over mean of the time a token, {TAIL:g} (1.1 to 2.0): assumed, not simulated."
)
IDLE_OVERHEAD: Final = 0.03
LATENT: Final = ("mla", "compressed")


def caveats(
    wanted: Wanted, composed: Composed, drafter: Drafter | None, refused: str | None
) -> tuple[Caveat, ...]:
    """All that a plan from the profile should say."""
    return tuple(dict.fromkeys(_all(wanted, composed, drafter, refused)))


def _all(
    wanted: Wanted, composed: Composed, drafter: Drafter | None, refused: str | None
) -> Iterator[Caveat]:
    asked = wanted.asked
    yield Caveat(
        about="steps",
        text="Composed of kernel times that NVIDIA published; nobody ran this deployment for this "
        "profile. Measure with `capplan profile` before buying.",
    )
    yield from composed.caveats
    if experts_of(asked.model) is not None:
        yield ASSUMED if asked.routing is None else _measured(asked.routing)
    if composed.launching_s:
        replayed = composed.replayed_tokens
        yield Caveat(
            about="prefill",
            text="Steps with a prefill chunk"
            + (f" and more than {replayed} tokens" if replayed else "")
            + " are taken to last at least "
            f"{composed.launching_s:.3f} s, in which the host launches their operators one by one, "
            f"{1e6 * LAUNCH_S:.0f} us each: assumed, and left out of the lower ends.",
        )
    yield power.caveat(asked.gpu, wanted.gpu.tdp_w)
    yield Caveat(about="tail", text=TAIL_NOTE)
    yield Caveat(
        about="memory",
        text=f"{memory.RESERVE_BYTES / 2**30:.1f} GiB a GPU for activations and communication is a "
        "planning figure of NVIDIA's, not read from this engine: compare the KV cache size it "
        "prints at start.",
    )
    if asked.split.tensor > 1 and any(k.attention.kind in LATENT for k in asked.model.layer_kinds):
        yield Caveat(
            about="kv_bytes_per_token",
            text=f"Each of {asked.split.tensor} GPUs keeps the whole latent cache of a sequence.",
        )
    yield from _drafting(drafter, refused)
    head = None if wanted.drafting is None else wanted.drafting.model.head
    if drafter is not None and head is not None and head.first_layer_inputs > 1:
        yield Caveat(
            about="draft times",
            text="The first layer's projections are timed for a hidden state alone, without the "
            "embedding beside it: a few per cent too short.",
        )


def _drafting(drafter: Drafter | None, refused: str | None) -> Iterator[Caveat]:
    if drafter is None:
        why = f"No drafter: {refused}." if refused else "No drafter is known for this model."
        yield Caveat(about="drafter", text=f"{why} Speculation cannot be planned from it.")
        return
    yield from DRAFTING
    assumed = sorted(
        name for name, one in drafter.acceptance.items() if one.origin.kind == "assumed"
    )
    yield Caveat(
        about="acceptance",
        text=f"Assumed for {', '.join(assumed)}; {acceptance.SPREAD}, assumed.",
    )
    yield Caveat(
        about="loaded_idle_overhead",
        text=f"Assumed {IDLE_OVERHEAD:.0%} (0 to 10 %).",
    )


def _measured(routing: Routing) -> Caveat:
    return Caveat(
        about="routing",
        text=f"As it was measured, tokens of different sequences share {routing.across:.0%} of "
        f"their experts, those of one sequence {routing.within:.0%}. Other texts may differ.",
    )
