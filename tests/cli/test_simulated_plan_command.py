"""Plans sized by simulation, and kept plans simulated again, as a user meets them."""

import json
from collections.abc import Iterator

import pytest

from capplan.files.writer import write_record
from capplan.planner.chain import Asked, plan
from capplan.records.plan import Portfolio
from capplan.records.profile import Profile
from capplan.records.simulation import Simulation
from straight import make_class, make_fleet, make_mix, make_profile

PROFILE = make_profile(
    step_s=lambda b, q: (0.010 + 0.0001 * b) * (1 + 0.05 * (q - 1)),
    draft_s=lambda _, g: 0.001 * g,
    spread=0.1,
)
CHAT = make_class(
    "chat",
    rates=(5000.0, 3000.0),
    prompt=50.0,
    output=11.0,
    cv=0.5,
    objectives={"ttft_p99_s": 0.5, "tpot_p99_s": 0.020},
)
AGENT = make_class(
    "agent",
    rates=(1000.0, 2000.0),
    prompt=500.0,
    output=31.0,
    cv=0.5,
    objectives={"ttft_p99_s": 1.0, "tpot_p99_s": 0.050},
)
FILES = ("--profile", "p.yaml", "--fleet", "fleet.yaml")


@pytest.fixture
def folder(capplan):
    """A profile, a fleet with a network and two forecasts of its model."""
    fleet = make_fleet()
    node = fleet.nodes["node"].model_copy(update={"network_bytes_per_s": 5e10})
    write_record(capplan.folder / "p.yaml", PROFILE)
    write_record(capplan.folder / "fleet.yaml", fleet.model_copy(update={"nodes": {"node": node}}))
    write_record(capplan.folder / "f.yaml", make_mix(CHAT, AGENT))
    write_record(capplan.folder / "chat.yaml", make_mix(CHAT))
    return capplan


def planned(capplan, *arguments: str, kept: str = "plan.json") -> Portfolio:
    ran = capplan("plan", *arguments, *FILES, "-o", kept)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    assert max(map(len, ran.stdout.splitlines())) <= 80
    return Portfolio.model_validate_json((capplan.folder / kept).read_text())


def keep_screened(capplan, count: int = 1) -> None:
    """What --screen -o keeps, made in this process: it starts at once."""
    made = plan(make_mix(CHAT), [PROFILE], make_fleet(), Asked(), "test")
    text = Portfolio(plans=(made,) * count).model_dump_json()
    (capplan.folder / "plan.json").write_text(text)


def simulated(capplan, *arguments: str) -> Simulation:
    ran = capplan("simulate", "plan.json", *FILES, "--format", "json", *arguments)
    assert ran.returncode == 0, ran.stderr
    return Simulation.model_validate_json(ran.stdout)


def refused(capplan, *arguments: str, code: int = 1) -> str:
    ran = capplan(*arguments)
    assert ran.returncode == code, (ran.stdout, ran.stderr)
    assert ran.stdout == ""
    assert "Traceback" not in ran.stderr
    return ran.stderr


def pairs(portfolio: Portfolio, found: Simulation) -> Iterator[tuple[object, object]]:
    (plan,) = portfolio.plans
    assert [one.policy for one in found.policies] == [one.policy for one in plan.policies]
    for one, other in zip(plan.policies, found.policies, strict=True):
        assert len(one.pools) == len(other.pools) > 0
        yield from zip(one.pools, other.pools, strict=True)


@pytest.mark.parametrize(
    "options",
    [
        ("--pools", "shared", "--policy", "by-load"),
        ("--pools", "separate", "--policy", "always:2"),
        ("--prefill", "dedicated", "--policy", "plain"),
    ],
)
def test_a_kept_plan_simulated_is_what_the_plan_says(folder, options):
    portfolio = planned(folder, "f.yaml", *options)
    for pool, seen in pairs(portfolio, simulated(folder)):
        assert seen.classes == pool.classes
        assert seen.predicted_capacity_per_s == pool.service.capacity_per_s
        assert seen.simulated_capacity_per_s == pytest.approx(pool.service.capacity_per_s, rel=0.01)
        assert seen.stopped_by == pool.service.binding.text
        (load,) = seen.loads
        assert load.rate_per_s == pool.at_peak.rate_per_s
        assert load.keeps_objectives
        said = {(one.traffic_class, one.quantity): one.value_s for one in pool.at_peak.latencies}
        rows = [row for row in load.compared if row.traffic_class is not None]
        assert {(row.traffic_class, row.quantity) for row in rows} == set(said)
        for row in rows:
            assert row.predicted == said[row.traffic_class, row.quantity]
            low, high = row.low or row.simulated, row.high or row.simulated
            assert low * (1 - 1e-9) <= row.predicted <= high * (1 + 1e-9)
        means = {row.quantity: row for row in load.compared if row.traffic_class is None}
        assert means["batch"].predicted == pool.at_peak.batch
        for row in means.values():
            # Another search may stop at another number of requests.
            assert row.predicted == pytest.approx(row.simulated, rel=0.01)


def test_another_seed_stays_near_and_the_same_prints_the_same(folder):
    first, same, other = (
        planned(folder, "chat.yaml", "--policy", "plain", "--seed", seed)
        for seed in ("1", "1", "4294967296")
    )
    assert first == same
    assert (first.plans[0].seed, other.plans[0].seed) == (1, 2**32)
    rates = [
        plan.policies[0].pools[0].service.capacity_per_s for plan in (*first.plans, *other.plans)
    ]
    assert rates[0] != rates[1]
    assert rates[0] == pytest.approx(rates[1], rel=0.03)


def test_a_screened_plan_can_be_simulated_as_well(folder):
    portfolio = planned(folder, "chat.yaml", "--screen", "--policy", "plain")
    assert portfolio.plans[0].seed is None
    ((pool, seen),) = pairs(portfolio, simulated(folder))
    assert seen.predicted_capacity_per_s == pool.service.screened_capacity_per_s
    assert seen.simulated_capacity_per_s < seen.predicted_capacity_per_s


def test_only_policies_of_the_plan_are_simulated(folder):
    keep_screened(folder)
    (one,) = simulated(folder, "--policy", "plain").policies
    assert one.policy == "plain"
    error = refused(folder, "simulate", "plan.json", *FILES, "--policy", "always:7,plain")
    assert error == (
        "--policy: always:7: is not in plan.json, which holds plain, always, by-load\n"
    )


def test_several_plans_in_a_file_are_not_one(folder):
    keep_screened(folder, 2)
    error = refused(folder, "simulate", "plan.json", *FILES)
    assert error == "plan.json: plans: must hold one plan to be simulated, found 2\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "plan.json"),
        ("[1, 2", "is not YAML"),
        ('{"version": 1, "plans": []}', "must hold one plan to be simulated, found 0"),
        ('{"version": 1, "plans": [{"capplan": "x"}]}', "demand: is required"),
    ],
)
def test_what_is_no_plan_is_refused(folder, text, message):
    (folder.folder / "plan.json").write_text(text)
    assert message in refused(folder, "simulate", "plan.json")


def test_a_plan_that_is_not_there_is_named(folder):
    assert refused(folder, "simulate", "none.json") == "none.json: no such file\n"


def test_a_profile_that_is_not_known_is_named(folder):
    keep_screened(folder)
    error = refused(folder, "simulate", "plan.json", "--fleet", "fleet.yaml")
    assert "is neither a file nor one of the profiles, found straight" in error


def without(profile: Profile) -> dict[str, Profile]:
    """The plan's profile as it may look the next time: less of it is there."""
    drafter = profile.drafters["eagle"]
    acceptance = drafter.acceptance["chat"].model_copy(update={"accepted_share": (0.8,)})
    shorter = drafter.model_copy(update={"acceptance": {"chat": acceptance}})
    return {
        "must hold the plan's drafter, eagle, found none": profile.model_copy(
            update={"drafters": {}}
        ),
        "must cover draft lengths that are planned with, found no ": profile.model_copy(
            update={"drafters": {"eagle": shorter}}
        ),
    }


@pytest.mark.parametrize("rule", list(without(PROFILE)))
def test_a_profile_that_lost_what_the_plan_uses_is_refused(folder, rule):
    keep_screened(folder)
    write_record(folder.folder / "p.yaml", without(PROFILE)[rule])
    error = refused(folder, "simulate", "plan.json", *FILES)
    assert error.startswith("profile straight: drafters: ")
    assert rule in error


def test_a_plan_that_was_edited_is_refused(folder):
    keep_screened(folder)
    kept = folder.folder / "plan.json"
    tree = json.loads(kept.read_text())
    pool = tree["plans"][0]["policies"][0]["pools"][0]
    pool["classes"], pool["sizing"]["peak_interval"] = ["chats"], 99
    kept.write_text(json.dumps(tree))
    assert refused(folder, "simulate", "plan.json", *FILES).splitlines() == [
        "plan toy: pools.classes: must be in the demand, found chats",
        "plan toy: sizing.peak_interval: must be one of 2 intervals, found 99",
    ]


def test_a_screen_says_that_it_was_asked_for(folder):
    ran = folder("plan", "chat.yaml", *FILES, "--screen")
    first = " ".join(ran.stdout.split())
    assert "percentiles are modelled, not simulated (--screen)" in first


def test_without_numba_a_plan_is_screened_and_says_why(folder):
    ran = folder("plan", "chat.yaml", *FILES, "--format", "json", NUMBA_DISABLE_JIT="1")
    (one,) = json.loads(ran.stdout)["plans"]
    assert one["seed"] is None
    assert not one["purchase_grade"]
    assert "not simulated (NUMBA_DISABLE_JIT switches numba off)" in one["grade"]


def test_where_numba_is_not_installed_the_package_is_named(folder):
    # As Python itself knows it: a package that cannot be found.
    (folder.folder / "sitecustomize.py").write_text(
        "import importlib.util\n"
        "found = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *more: "
        "None if name == 'numba' else found(name, *more)\n"
    )
    ran = folder("plan", "chat.yaml", *FILES, "--format", "json", PYTHONPATH=str(folder.folder))
    (one,) = json.loads(ran.stdout)["plans"]
    assert 'not simulated (numba is not installed: pip install "capplan[fast]")' in one["grade"]


def test_a_simulated_plan_that_cannot_be_exits_3_with_what_can(folder):
    hopeless = CHAT.model_copy(update={"objectives": {"ttft_p99_s": 1.0, "tpot_p99_s": 0.001}})
    write_record(folder.folder / "f.yaml", make_mix(hopeless))
    error = refused(folder, "plan", "f.yaml", *FILES, "--policy", "plain", code=3)
    assert "plain: one request almost alone, simulated, misses tpot_p99 of chat: " in error
    value = float(error.strip().rsplit(" ", 1)[1])
    objectives = {"ttft_p99_s": 1.0, "tpot_p99_s": value}
    feasible = CHAT.model_copy(update={"objectives": objectives})
    write_record(folder.folder / "f.yaml", make_mix(feasible))
    assert planned(folder, "f.yaml", "--policy", "plain").plans[0].policies[0].placement


def test_waits_without_end_are_shown_and_not_stumbled_over(folder):
    ran = folder("simulate", "f.yaml", *FILES, "--policy", "by-load", "--load", "2")
    assert ran.returncode == 0, ran.stderr
    assert "objectives MISSED" in ran.stdout
    assert "no end" in ran.stdout
    assert max(map(len, ran.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    "options",
    [
        ("--seed", "-1"),
        ("--seed", "1.5"),
        ("--seed", "99999999999999"),
        ("--pools", "both"),
        ("--pools", ""),
        ("--prefill", "never"),
    ],
)
def test_options_that_make_no_sense_are_a_matter_of_usage(folder, options):
    error = refused(folder, "plan", "chat.yaml", *FILES, *options, code=2)
    assert f"Invalid value for '{options[0]}'" in error


def test_what_a_plan_says_itself_is_not_asked_beside_it(folder):
    keep_screened(folder)
    options = {"--pools": "auto", "--prefill": "beside", "--load": "0.5", "--in-flight": "4"}
    given = [word for pair in options.items() for word in pair]
    error = refused(folder, "simulate", "plan.json", *given)
    rule = "is for forecasts: a plan is simulated as it is, at its own peak"
    assert error.splitlines() == [f"{name}: {rule}" for name in options]


def test_replicas_behind_a_router_and_engines_for_prompts_do_not_go_together(folder):
    error = refused(
        folder, "simulate", "f.yaml", *FILES, "--prefill", "dedicated", "--replicas", "2"
    )
    assert error == "--replicas: must be 1 where prompts have engines of their own, found 2\n"
    planned(folder, "f.yaml", "--screen", "--prefill", "dedicated", "--policy", "plain")
    assert "--replicas: must be 1" in refused(folder, "simulate", "plan.json", "--replicas", "2")


def test_the_last_of_two_pools_options_counts(folder):
    found = planned(folder, "f.yaml", "--screen", "--pools", "separate", "--pools", "shared")
    assert all(len(one.pools) == 1 for one in found.plans[0].policies)
