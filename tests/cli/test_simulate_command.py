"""`capplan simulate` as a user meets it."""

import json

import pytest

from capplan.records.simulation import Simulation


def test_prediction_and_simulation_stand_side_by_side(capplan):
    ran = capplan("simulate", "servegen-m-large", "--policy", "plain", "--load", "0.5")
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    assert max(map(len, ran.stdout.splitlines())) <= 80
    for word in (
        "predicted",
        "simulated",
        "interval",
        "objectives kept",
        "Where TTFT comes from",
    ):
        assert word in ran.stdout


def test_json_reads_back_and_means_agree_at_half_load(capplan):
    arguments = ("simulate", "servegen-m-large", "--load", "0.5", "--format", "json")
    found = Simulation.model_validate_json(capplan(*arguments).stdout)
    assert [policy.policy for policy in found.policies] == ["plain", "always", "by-load"]
    for policy in found.policies:
        (pool,) = policy.pools
        assert pool.simulated_capacity_per_s > 0
        for row in pool.loads[0].compared:
            if row.quantity in ("batch", "tpot_mean_s"):
                assert row.simulated == pytest.approx(row.predicted, rel=0.10)


def test_the_same_seed_prints_the_same(capplan):
    arguments = ("simulate", "servegen-m-large", "--policy", "plain", "--format", "json")
    first, second = capplan(*arguments).stdout, capplan(*arguments).stdout
    assert first == second
    one, two = (
        json.loads(text)["policies"][0]["pools"][0]
        for text in (first, capplan(*arguments, "--seed", "2").stdout)
    )
    assert two["loads"] != one["loads"]
    assert two["simulated_capacity_per_s"] == pytest.approx(
        one["simulated_capacity_per_s"], rel=0.03
    )


@pytest.mark.parametrize("load", ["0", "x", "3", "nan", ""])
def test_loads_that_are_none_are_refused(capplan, load):
    ran = capplan("simulate", "servegen-m-large", "--load", load)
    assert ran.returncode == 1
    assert "--load: needs numbers above 0 and at most 2" in ran.stderr


def test_bursts_cost_capacity_and_replicas_behind_a_router_win_some_back(capplan):
    def capacity(*options: str) -> float:
        arguments = ("simulate", "servegen-m-large", "--policy", "plain", "--format", "json")
        ran = capplan(*arguments, *options)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)["policies"][0]["pools"][0]["simulated_capacity_per_s"]

    bursty = ("--arrivals", "gamma:3")
    alone = capacity(*bursty)
    assert alone < 0.9 * capacity()
    assert capacity(*bursty, "--replicas", "8", "--router", "least-loaded") > 1.05 * alone


@pytest.mark.parametrize("kind", ["uniform", "gamma", "gamma:0", "gamma:x"])
def test_arrivals_that_are_none_are_refused(capplan, kind):
    ran = capplan("simulate", "servegen-m-large", "--arrivals", kind)
    assert ran.returncode == 1
    assert "--arrivals: must be poisson, or gamma:CV" in ran.stderr
