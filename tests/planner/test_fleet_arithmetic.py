"""Replicas, nodes, racks, watts and dollars, each by hand."""

import numpy as np
import pytest

from capplan.errors import InfeasibleError, InputError
from capplan.planner.cost import cost
from capplan.planner.demand import demand
from capplan.planner.load import Load
from capplan.planner.placement import placement
from capplan.planner.sizing import sizing
from straight import make_fleet, make_forecast


def sized(rates, capacity, minute=1.0, **rules):
    load = Load.of(demand(make_forecast(rates=rates)))
    return sizing(load, np.array([capacity]), minute, make_fleet(**rules).rules)


def test_exactly_full_needs_no_more_and_a_hair_above_needs_one():
    assert sized((30.0,), 10.0).replicas == 3
    assert sized((30.001,), 10.0).replicas == 4


def test_headroom_minute_and_spares_come_on_top():
    found = sized((30.0, 10.0), 10.0, minute=1.2, headroom=0.1, spare_replicas=2)
    assert found.unrounded_by_interval == pytest.approx((4.0, 1.3333333))
    assert found.replicas_by_interval == (4, 2)
    assert (found.replicas_at_peak, found.replicas) == (4, 6)
    assert found.peak_rate_per_s == pytest.approx(36.0)


def test_the_minimum_holds_at_night():
    assert sized((1.0,), 10.0, min_replicas=3).replicas == 3


@pytest.mark.parametrize(
    ("replicas", "size", "gpus", "nodes", "stranded"),
    [(3, 8, 24, 3, 0), (3, 4, 16, 2, 4), (5, 2, 16, 2, 6), (2, 16, 32, 4, 0), (1, 3, 8, 1, 5)],
)
def test_replicas_fill_whole_nodes(replicas, size, gpus, nodes, stranded):
    found = placement([(replicas, size)], make_fleet(), "h200-sxm")
    assert (found.gpus, found.nodes, found.gpus_stranded) == (gpus, nodes, stranded)


def test_four_systems_of_ten_kilowatts_fill_a_rack_of_forty():
    found = placement([(9, 8)], make_fleet(), "h200-sxm")
    assert (found.nodes_per_rack, found.racks) == (4, 3)
    assert found.racks_unrounded == 2.25


def test_space_can_bind_before_power():
    fleet = make_fleet()
    low = fleet.model_copy(update={"rack": fleet.rack.model_copy(update={"units": 17})})
    assert placement([(4, 8)], low, "h200-sxm").nodes_per_rack == 2


def test_a_rack_too_weak_for_one_node_is_infeasible():
    fleet = make_fleet()
    weak = fleet.model_copy(update={"rack": fleet.rack.model_copy(update={"power_w": 10_000.0})})
    with pytest.raises(InfeasibleError, match="needs 10200 W and a rack offers 10000"):
        placement([(1, 8)], weak, "h200-sxm")


def test_a_replica_of_a_node_and_a_half_is_refused():
    with pytest.raises(InputError, match=r"must fill whole nodes of 8, found 1\.5 nodes"):
        placement([(1, 12)], make_fleet(), "h200-sxm")


def test_dollars_by_hand():
    asked = demand(make_forecast(rates=(10.0,), prompt=900.0, output=100.0))
    placed = placement([(2, 8)], make_fleet(), "h200-sxm")
    found = cost(asked, placed, None, make_fleet(), "h200-sxm")
    assert found is not None
    assert found.total_usd_per_hour == pytest.approx(16 * 4.0)
    # 10/s for an hour: 3.6 million output tokens, 36 million of both kinds.
    assert found.output_usd_per_million_tokens == pytest.approx(64 / 3.6)
    assert found.blended_usd_per_million_tokens == pytest.approx(64 / 36)


def test_energy_that_is_paid_but_not_known_has_no_price():
    fleet = make_fleet()
    price = fleet.prices["h200-sxm"].model_copy(update={"energy_included": False})
    owned = fleet.model_copy(update={"prices": {"h200-sxm": price}})
    asked = demand(make_forecast())
    assert cost(asked, placement([(1, 8)], owned, "h200-sxm"), None, owned, "h200-sxm") is None
