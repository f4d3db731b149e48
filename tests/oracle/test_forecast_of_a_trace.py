"""A plan from a trace's forecast against a plan from the trace itself."""

import csv

import numpy as np
import pytest

from capplan.cli.simulated import stage
from capplan.files.catalogue import find
from capplan.files.reader import read
from capplan.forecaster.kinds import Rule
from capplan.forecaster.make import Said, make
from capplan.forecaster.observe import Wishes, observe
from capplan.importers.traces.how import How
from capplan.importers.traces.ledger import Ledger
from capplan.importers.traces.read import read as read_traces
from capplan.physics import lengths
from capplan.planner import chain
from capplan.planner.demand import demand
from capplan.records.fleet import Fleet
from capplan.records.forecast import Rate
from capplan.records.profile import Profile

HOUR = 3600.0
OBJECTIVES = {"ttft_p99_s": 3.0, "tpot_p95_s": 0.05}


def write_trace(path):
    """Two days, 120,000 requests: lengths with a heavy tail, long with long, cut at a limit."""
    rng = np.random.default_rng(5)
    at = np.sort(rng.uniform(0, 50 * HOUR, 200_000))
    at = at[rng.uniform(0, 1, len(at)) < 0.6 + 0.4 * np.sin(2 * np.pi * at / 86_400)]
    normal = rng.multivariate_normal([0, 0], [[1, 0.4], [0.4, 1]], len(at))
    prompt = np.minimum(np.ceil(np.exp(6.8 + 1.1 * normal[:, 0])), 7437)
    output = np.ceil(np.exp(4.0 + 1.3 * normal[:, 1]))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["at", "in", "out"])
        writer.writerows(zip(at.tolist(), prompt.astype(int), output.astype(int), strict=True))
    return at, prompt, output


def exact_nodes(tokens):
    """Means of the sorted requests between the edges that the planner cuts at, not quantiles."""
    ranked = np.sort(tokens)
    summed = np.concatenate([[0.0], np.cumsum(ranked)])
    edges = lengths._EDGES * len(ranked)
    means = np.diff(np.interp(edges, np.arange(len(ranked) + 1), summed)) / np.diff(edges)
    return (*means.tolist(), *np.quantile(ranked, lengths.REPORTED).tolist())


def unrounded(monkeypatch, asked, forecast, requests, simulated):
    profile = read(find("profiles", "llama-3.1-70b-fp8-tp4"), Profile)
    fleet = read(find("fleets", "dgx-h200"), Fleet)
    monkeypatch.setattr(chain, "demand_of", lambda _: requests)
    how = chain.Asked(("plain",), "shared", "beside", stage(1) if simulated else None)
    (policy,) = chain.plan(forecast, [profile], fleet, how, asked).policies
    return max(policy.pools[0].sizing.unrounded_by_interval)


@pytest.mark.parametrize("simulated", [False, True])
def test_replicas_of_the_forecast_are_those_of_the_trace(tmp_path, monkeypatch, simulated):
    at, prompt, output = write_trace(tmp_path / "t.csv")
    mapping = "arrival=at:s,prompt=in,output=out"
    from capplan.importers.traces.layout import mapped

    history = observe(
        read_traces([tmp_path / "t.csv"], How(Ledger(), mapped(mapping))), Wishes("0", Rule())
    )
    made = make(history, Said("f", "llama-3.1-70b", {"all": OBJECTIVES}), "f.csv")
    rate = Rate(values_per_s=tuple((made.columns["rate_per_s"] * 300).tolist()))
    traffic = made.forecast.classes[0].model_copy(update={"rate": rate})
    forecast = made.forecast.model_copy(update={"classes": (traffic,)})
    own = demand(forecast)
    counts = np.bincount(((at - at[0]) // HOUR).astype(int))[: len(rate.values_per_s)]
    exact = {
        "rate_per_s": tuple((counts / HOUR * 300).tolist()),
        "prompt_tokens": exact_nodes(prompt),
        "output_tokens": exact_nodes(output),
        "mean_prompt_tokens": float(prompt.mean()),
        "mean_output_tokens": float(output.mean()),
    }
    truth = own.model_copy(update={"classes": (own.classes[0].model_copy(update=exact),)})

    found = unrounded(monkeypatch, "own", forecast, own, simulated)
    expected = unrounded(monkeypatch, "exact", forecast, truth, simulated)

    assert found == pytest.approx(expected, rel=0.02)
