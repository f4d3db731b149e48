"""Which classes share replicas: every way is looked at, and pooling pays where it should."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capplan.errors import InfeasibleError
from capplan.planner.chain import Asked, plan
from capplan.planner.demand import demand
from capplan.planner.search import Pooling, Search, partitions
from capplan.records.forecast import Forecast, Rate, TrafficClass
from capplan.records.plan import Plan, PolicyPlan
from straight import make_class, make_fleet, make_forecast, make_mix, make_profile, make_stage

A_S, B_S = 0.010, 0.0001
PLAIN = make_profile(prefill_s_per_token=1e-8)
SPECULATIVE = make_profile(
    step_s=lambda b, q: (A_S + B_S * b) * (1 + 0.1 * (q - 1)),
    draft_s=lambda _, g: 0.001 * g,
    spread=0.05,
)


def planned(asked: Forecast, pooling: Pooling = "auto", *, screen: bool = False, **rules) -> Plan:
    how = Asked(pooling=pooling, stage=None if screen else make_stage())
    return plan(asked, [PLAIN], make_fleet(**rules), how, "test")


def only(found: Plan) -> PolicyPlan:
    (policy,) = found.policies
    return policy


def gpus(found: Plan) -> int:
    placement = only(found).placement
    assert placement is not None
    return placement.gpus


def pools(found: Plan) -> list[tuple[str, ...]]:
    return sorted(pool.classes for pool in only(found).pools)


# A(B) = (1 - a / s) / b tokens a second keep a step of T = a + b B at s, where prompts are nothing.
TIGHT_S, LOOSE_S, OUTPUT = 0.0125, 0.030, 6
TIGHT, LOOSE = ((1 - A_S / limit_s) / B_S for limit_s in (TIGHT_S, LOOSE_S))


def chat(name: str, tokens_per_s: float, limit_s: float) -> TrafficClass:
    """A class whose median time per token is what a step takes, of answers of 5 steps."""
    return make_class(
        name,
        rates=(tokens_per_s / (OUTPUT - 1),),
        prompt=1.0,
        output=OUTPUT,
        objectives={"ttft_p99_s": 100.0, "tpot_p50_s": limit_s},
    )


def in_hours(traffic: TrafficClass, *factors: float) -> TrafficClass:
    assert traffic.rate is not None
    assert traffic.rate.values_per_s is not None
    (rate,) = traffic.rate.values_per_s
    values = tuple(rate * factor for factor in factors)
    return traffic.model_copy(update={"rate": Rate(values_per_s=values)})


def tight_beside_loose(tight: float, loose: float) -> Forecast:
    """Classes that take so many replicas each where each has its own."""
    return make_mix(
        chat("tight", tight * TIGHT, TIGHT_S),
        chat("loose", loose * LOOSE, LOOSE_S),
    )


@pytest.mark.parametrize(("count", "bell"), [(1, 1), (2, 2), (3, 5), (4, 15), (5, 52), (6, 203)])
def test_every_partition_of_a_few_classes_is_looked_at_once(count, bell):
    classes = tuple(range(count))
    found = list(partitions(classes, "auto"))
    assert found[0] == [classes]
    assert len(found) == bell
    assert len({frozenset(blocks) for blocks in found}) == bell
    for blocks in found:
        assert sorted(place for block in blocks for place in block) == list(classes)


def test_of_many_classes_each_is_looked_at_alone():
    classes = tuple(range(7))
    found = list(partitions(classes, "auto"))
    assert len(found) == 1 + 7 + 1
    for blocks in found:
        assert sorted(place for block in blocks for place in block) == list(classes)


@pytest.mark.parametrize("count", [1, 3, 8])
def test_pooling_that_is_asked_for_is_the_only_one(count):
    classes = tuple(range(count))
    assert list(partitions(classes, "shared")) == [[classes]]
    assert list(partitions(classes, "separate")) == [[(place,) for place in classes]]


@pytest.mark.parametrize("screen", [True, False])
def test_a_tight_class_does_not_share_with_a_loose_one(screen):
    """Apart 9.5 and 9.5 replicas; together every step must keep the tight objective."""
    asked = tight_beside_loose(9.5, 9.5)
    found, shared = planned(asked, screen=screen), planned(asked, "shared", screen=screen)
    assert pools(found) == [("loose",), ("tight",)]
    for pool in only(found).pools:
        assert max(pool.sizing.unrounded_by_interval) == pytest.approx(9.5, rel=0.06)
    together = 9.5 * (TIGHT + LOOSE) / TIGHT
    (pool,) = only(shared).pools
    assert max(pool.sizing.unrounded_by_interval) == pytest.approx(together, rel=0.06)


@pytest.mark.parametrize(("spares", "apart"), [(0, True), (2, False)])
def test_spares_are_counted_for_each_pool(spares, apart):
    """Apart one replica each; together (1500 + 3500) / 2000 = 2.5 are three: two spares a pool
    make it four against five, no spares two against three.
    """
    asked = tight_beside_loose(1500 / TIGHT, 3500 / LOOSE)
    found = planned(asked, spare_replicas=spares)
    assert len(pools(found)) == (2 if apart else 1)
    assert gpus(found) == 8 * (2 if apart else 5)
    for pool in only(found).pools:
        assert pool.sizing.spare_replicas == spares


def test_of_equal_fleets_the_one_with_fewer_pools_is_taken():
    """Two equal classes of 1.9 replicas: four apart, four together."""
    asked = make_mix(*(chat(name, 1.9 * TIGHT, TIGHT_S) for name in ("one", "two")))
    assert pools(planned(asked)) == [("one", "two")]


def test_classes_that_are_told_apart_only_by_name_share_what_both_waste():
    """1.25 replicas each: four apart, 2.5 together are three."""
    asked = make_mix(*(chat(name, 1.25 * TIGHT, TIGHT_S) for name in ("one", "two")))
    assert gpus(planned(asked)) == 8 * 3
    assert gpus(planned(asked, "separate")) == 8 * 4


@settings(max_examples=2, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0.2, 6.0), st.sampled_from([0.012, 0.014, 0.02, 0.03])),
        min_size=3,
        max_size=3,
    )
)
def test_pools_never_need_more_than_all_together_or_all_apart(classes):
    asked = make_mix(
        *(
            chat(str(place), need * (1 - A_S / limit_s) / B_S, limit_s)
            for place, (need, limit_s) in enumerate(classes)
        )
    )
    known = [gpus(planned(asked, pooling)) for pooling in ("shared", "separate")]
    # What ranks partitions are quick simulations: a replica of each pool may be rounded away.
    assert gpus(planned(asked)) <= min(known) + 8


SILENT = make_class(
    "silent",
    rates=(0.0,),
    prompt=5000.0,
    output=400.0,
    objectives={"ttft_p99_s": 1e-3, "tpot_p99_s": 1e-4, "chunk_gap_p99_s": 1e-3},
)


@pytest.mark.parametrize("screen", [True, False])
@pytest.mark.parametrize("pooling", ["auto", "separate", "shared"])
def test_a_class_that_asks_for_nothing_goes_along_and_changes_nothing(screen, pooling):
    loud = chat("loud", 3.3 * TIGHT, TIGHT_S)
    alone, beside = (
        planned(make_mix(*classes), pooling, screen=screen) for classes in ((loud,), (SILENT, loud))
    )
    assert pools(beside) == [("silent", "loud")]
    assert gpus(alone) == gpus(beside)
    (one,), (two,) = only(alone).pools, only(beside).pools
    assert one.service.capacity_per_s == pytest.approx(two.service.capacity_per_s, rel=1e-9)
    assert {estimate.traffic_class for estimate in two.at_peak.latencies} == {"loud"}


def test_a_class_that_asks_in_other_hours_only_does_not_bind_this_one():
    """Never at the same time: a replica of both in each hour has room for the one alone."""
    tight, loose = chat("tight", 1.5 * TIGHT, TIGHT_S), chat("loose", 1.5 * LOOSE, LOOSE_S)
    found = planned(make_mix(in_hours(tight, 1.0, 0.0), in_hours(loose, 0.0, 1.0)))
    assert pools(found) == [("tight", "loose")]
    assert gpus(found) == 8 * 2


def test_a_class_too_rare_for_a_thousandth_still_binds():
    """One request in 5,000 that must come at half the time a token: it has to be kept too."""
    asked = make_mix(chat("many", 4.5 * LOOSE, LOOSE_S), chat("few", 4.5 * LOOSE / 5000, TIGHT_S))
    shared = planned(asked, "shared")
    (pool,) = only(shared).pools
    assert max(pool.sizing.unrounded_by_interval) == pytest.approx(4.5 * LOOSE / TIGHT, rel=0.1)
    assert pools(planned(asked)) == [("few",), ("many",)]


@pytest.mark.parametrize("screen", [True, False])
def test_by_load_takes_over_the_pools_of_other_policies(screen):
    """Whatever the order in which policies are asked for, and each at its own best."""
    asked = make_mix(
        make_class(
            "short",
            rates=(300.0,),
            prompt=50.0,
            output=11.0,
            objectives={"ttft_p99_s": 1.0, "tpot_p99_s": 0.020},
        ),
        make_class(
            "long",
            rates=(300.0,),
            prompt=50.0,
            output=31.0,
            objectives={"ttft_p99_s": 1.0, "tpot_p99_s": 0.040},
        ),
    )
    stage = None if screen else make_stage()
    bought = {}
    for policies in (("by-load", "always", "plain"), ("plain", "always", "by-load")):
        found = plan(asked, [SPECULATIVE], make_fleet(), Asked(policies, stage=stage), "test")
        assert [one.policy for one in found.policies] == ["plain", "always", "by-load"]
        for one in found.policies:
            assert one.placement is not None
            assert bought.setdefault(one.policy, one.placement.gpus) == one.placement.gpus
    assert bought["by-load"] <= min(bought["plain"], bought["always"])


def test_nothing_is_solved_twice():
    """Policies that take the same pools are planned from the same object."""
    asked = demand(make_forecast(rates=(500.0,), output=21.0))
    search = Search(asked, [(SPECULATIVE, "eagle", None)], make_fleet().rules, make_stage())
    (first,), (second,) = search.pools("always"), search.pools("always")
    assert first is second


def test_the_infinite_need_of_one_pool_is_not_hidden_by_another():
    asked = make_mix(chat("fine", TIGHT, TIGHT_S), chat("hopeless", 1.0, 0.005))
    with pytest.raises(InfeasibleError, match="misses tpot_p50 of hopeless"):
        planned(asked, screen=True)
