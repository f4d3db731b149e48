"""How many sequences fit, against the planner's rules, shipped profiles and brute force."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capplan.errors import InfeasibleError, InputError
from capplan.files.reader import read
from capplan.physics import draft_model as drafters
from capplan.physics import memory
from capplan.physics.precision import at_precision
from capplan.physics.sharding import Split
from capplan.planner.anatomy import anatomy
from capplan.planner.fit import fit
from capplan.planner.remedies import Alternatives, remedies
from capplan.planner.ridges import WHOLE_STEP
from capplan.planner.setup import Setup
from capplan.records.architecture import Architecture
from capplan.records.fleet import Fleet, Gpu
from capplan.records.profile import Profile

ROOT = Path(__file__).parents[2]
H200 = read(ROOT / "fleets" / "dgx-h200.yaml", Fleet).gpus["h200-sxm"]
NOTHING_ELSE = Alternatives({})


def model(name: str) -> Architecture:
    return read(ROOT / "models" / f"{name}.yaml", Architecture)


def setup(
    name: str, gpus: int, precision: str | None = None, drafted: int = 0, context: int = 8192
) -> Setup:
    architecture = model(name)
    stored = architecture.stored if precision is None else at_precision(precision)  # type: ignore[arg-type]
    assert stored is not None
    return Setup(
        architecture=architecture,
        stored=stored,
        kv_bytes_per_value=2.0,
        context_tokens=context,
        gpu=H200,
        split=Split(gpus, gpus),
        drafter=drafters.built_in(architecture, stored) if drafted else None,
        draft_tokens=drafted,
    )


@pytest.mark.parametrize(
    ("profile", "gpus", "precision"),
    [("kimi-k2.5-int4-tp8", 8, None), ("llama-3.1-70b-fp8-tp4", 4, "fp8")],
)
def test_as_many_tokens_fit_as_the_shipped_profile_plans_with(profile, gpus, precision):
    shipped = read(ROOT / "profiles" / "h200-sxm" / f"{profile}.yaml", Profile)
    one = setup(shipped.model.name, gpus, precision, context=128)
    weights = gpus * sum(one.weights_on_gpu().values())
    assert weights == pytest.approx(shipped.memory.weights_bytes, rel=0.01)
    tokens = one.sequences() * 128
    assert tokens == pytest.approx(shipped.memory.kv_capacity_tokens, rel=0.012)


@given(context=st.integers(100, 100_000), drafted=st.integers(1, 16), gpus=st.sampled_from([4, 8]))
def test_a_drafter_takes_what_the_planner_says_it_takes(context, drafted, gpus):
    one = replace(setup("llama-3.1-70b", gpus), context_tokens=context)
    small = model("llama-3.1-8b")
    drafting = replace(one, drafter=drafters.of_model(small), draft_tokens=drafted)
    free = memory.usable_bytes(H200.memory_bytes) - sum(one.weights_on_gpu().values())
    own, theirs = 327_680 / gpus, 131_072 / gpus
    tokens = memory.kv_tokens_beside_drafter(free / own, own, drafting.drafter_bytes(), theirs)
    assert drafting.sequences() == int(tokens / (context + drafted) + 1e-9)


def test_states_are_kept_once_for_every_token_that_is_verified():
    plain, drafting = (setup("qwen3.5-397b-a17b", 8, "fp8", drafted) for drafted in (0, 3))
    state = 45 * (64 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 64 * 128) * 2) / 8
    slots = 3 * 15 * 2 * 256 * 2  # one of two key-value heads on each GPU
    own = drafting.drafter.held_bytes(8192, 2.0, 3, drafting.split)
    assert drafting.sequence_bytes() - plain.sequence_bytes() - own == 3 * state + slots


@pytest.mark.parametrize("name", ["kimi-k2", "qwen3.8-2.4t-a95b", "llama-3.1-405b"])
def test_the_nearest_number_of_gpus_does_and_fewer_do_not(name):
    small = setup(name, 2, "bf16")
    with pytest.raises(InfeasibleError) as refused:
        fit(small, "h200-sxm", NOTHING_ELSE)
    assert refused.value.exit_code == 3
    words = str(refused.value).rpartition("--on h200-sxm:")[2].split()
    gpus, tensor, expert = int(words[0]), int(words[2]), int(words[4])
    assert replace(small, split=Split(gpus, tensor, expert)).weights_fit()
    floor = sum(setup(name, 1, "bf16").weights_on_gpu().values()) / gpus
    assert floor < memory.usable_bytes(H200.memory_bytes)
    # Nothing smaller holds them: weights in equal shares, no matrix twice.
    least = sum(setup(name, 1, "bf16").weights_on_gpu().values()) / memory.usable_bytes(
        H200.memory_bytes
    )
    halved = Split(gpus // 2, gpus // 2)
    assert gpus // 2 < least or not replace(small, split=halved).weights_fit()


def test_what_cannot_be_split_or_computed_is_refused_together():
    wrong = replace(setup("qwen3-30b-a3b", 8, "nvfp4"), split=Split(8, 8, 3))
    with pytest.raises(InputError) as refused:
        fit(wrong, "h200-sxm", NOTHING_ELSE)
    told = str(refused.value)
    assert "--ep: must divide the replica's 8 GPUs, found 3" in told
    assert (
        "--precision: h200-sxm cannot compute in it, only in bf16, fp8, int8, found nvfp4" in told
    )


def test_a_checkpoint_in_four_bits_runs_where_engines_unpack_it():
    assert fit(setup("gpt-oss-120b", 1), "h200-sxm", NOTHING_ELSE).asked.share is not None
    bare = replace(setup("gpt-oss-120b", 1), gpu=H200.model_copy(update={"weight_only": ()}))
    with pytest.raises(InputError, match="found mxfp4"):
        fit(bare, "h200-sxm", NOTHING_ELSE)


def test_remedies_are_what_the_changed_setup_holds_most_gained_first():
    larger = Gpu(memory_bytes=3e11, tdp_w=1e3, idle_w=1e2, sources={})
    one = setup("deepseek-v3", 8, "fp8", drafted=3)
    found = remedies(one, Alternatives({"larger": larger}))
    assert [row.gained for row in found] == sorted((row.gained for row in found), reverse=True)
    told = {row.lever: row for row in found}
    assert set(told) == {"layout", "gpu", "kv precision", "context", "drafter", "host memory"}
    again = {
        "kv precision": replace(one, kv_bytes_per_value=1.0),
        "context": replace(one, context_tokens=4096),
        "drafter": one.plain(),
        "gpu": replace(one, gpu=larger),
        "layout": replace(one, split=Split(8, 1, 8)),
        "host memory": replace(one, host_share=0.25),
    }
    for lever, other in again.items():
        assert told[lever].sequences == other.sequences()
        assert told[lever].gained == other.sequences() - one.sequences() > 0


def test_a_step_waits_for_the_experts_in_host_memory():
    # 58 layers of 256 experts of three matrices, 7168 × 2048, FP8, an eighth of each on a GPU: with
    # hundreds of sequences nearly all of the quarter that lies there is fetched in every step.
    one = replace(setup("deepseek-v3", 8, "fp8"), host_share=0.25)
    quarter_bytes = 58 * 256 * 3 * 7168 * 2048 / 8 / 4
    assert H200.host_bytes_per_s is not None
    assert one.waits_s(2000) == pytest.approx(quarter_bytes / H200.host_bytes_per_s, rel=0.01)
    kept = setup("deepseek-v3", 8, "fp8").weights_on_gpu()["routed_experts"]
    assert kept - one.weights_on_gpu()["routed_experts"] == pytest.approx(quarter_bytes, rel=0.01)
    assert setup("deepseek-v3", 8, "fp8").waits_s(2000) is None
    bare = H200.model_copy(update={"host_bytes_per_s": None})
    told = remedies(replace(setup("deepseek-v3", 8, "fp8"), gpu=bare), Alternatives({}))
    assert "host memory" not in {row.lever for row in told}


def test_fewer_slots_and_smaller_drafters_help_where_they_hold_states():
    one = setup("qwen3.5-27b", 8, drafted=8)
    large = replace(one, drafter=drafters.of_model(model("qwen3.5-27b")))
    found = remedies(large, Alternatives({}, (one.drafter,)))  # type: ignore[arg-type]
    assert {"look-ahead", "smaller drafter", "drafter"} <= {row.lever for row in found}


def test_memory_binds_where_arithmetic_comes_later():
    found = fit(setup("deepseek-v3", 8, "fp8"), "h200-sxm", NOTHING_ELSE)
    assert found.memory_binds is True
    short = fit(setup("llama-3.1-8b", 1, context=64), "h200-sxm", NOTHING_ELSE)
    assert short.memory_binds is False
    whole = next(row for row in short.ridges if row.part == WHOLE_STEP)
    assert whole.batch is not None
    assert short.asked.share.sequences > whole.batch  # type: ignore[union-attr]


def test_without_rates_nothing_is_said_of_ridges():
    bare = H200.model_copy(update={"bandwidth_bytes_per_s": None})
    found = fit(replace(setup("mixtral-8x7b", 2), gpu=bare), "bare", NOTHING_ELSE)
    assert found.memory_binds is None
    assert all(row.batch is None for row in found.ridges)


def test_a_head_of_another_width_stands_whole_on_every_gpu():
    one = setup("gemma-3-1b", 4)
    six = model("bench-moe-128e")  # 12 heads, which 8 GPUs cannot share
    drafter = drafters.of_model(six)
    assert drafter.split(Split(4, 4)) == Split(4, 4)
    assert drafter.split(Split(8, 8)) == Split(1, 1)
    assert drafter.weights_bytes(drafter.split(Split(8, 8))) == drafter.weights_bytes()
    assert one.weights_fit()


@pytest.mark.parametrize("file", sorted((ROOT / "models").glob("*.yaml")), ids=lambda f: f.stem)
def test_components_make_up_the_whole_and_steps_read_no_more(file):
    architecture = read(file, Architecture)
    stored = at_precision("fp8")
    found = anatomy(architecture, stored, "bf16", 8192, "test")
    inside = [one for one in found.components if one.name != "prediction"]
    assert sum(one.parameters for one in inside) == found.parameters_total
    assert sum(one.parameters_active for one in inside) == found.parameters_active
    assert sum(one.weights_bytes for one in inside) == pytest.approx(found.weights_bytes)
    read_bytes = [one.weights_read_bytes for one in found.touched]
    assert read_bytes == sorted(read_bytes)
    assert read_bytes[-1] <= found.weights_bytes
    tables = sum(one.kv_bytes_per_token for one in found.caches)
    assert tables == pytest.approx(found.kv_bytes_per_token)
