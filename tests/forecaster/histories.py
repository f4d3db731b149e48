"""Traces and rates for tests."""

import csv
from pathlib import Path

import numpy as np

from capplan.records.history import FileRead
from capplan.records.trace import Counted, Reading, Sample, Seen, Trace

SHIPPED = Path(__file__).parents[2] / "forecasts" / "servegen-m-large.csv"
"""Two weeks of a production service by the hour: ServeGen, Apache-2.0."""


def m_large():
    with SHIPPED.open() as file:
        return np.array([float(row["mean_rps"]) for row in csv.DictReader(file)])


def lengths(rng, count):
    """Prompts and answers that go together a little."""
    normal = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], count)
    prompt = np.ceil(np.exp(6.5 + 1.0 * normal[:, 0]))
    output = np.ceil(np.exp(4.5 + 0.9 * normal[:, 1]))
    return prompt, output


def trace(arrival_s, seed=1, dated=False, kinds=("all",)):
    rng = np.random.default_rng(seed)
    prompt, output = lengths(rng, len(arrival_s))
    return Trace(
        arrival_s=np.asarray(arrival_s, dtype=float),
        prompt_tokens=prompt,
        output_tokens=output,
        kind=np.arange(len(arrival_s)) % len(kinds),
        kinds=kinds,
        dated=dated,
    )


def of_requests(requests):
    count = len(requests)
    return Reading(requests, None, (FileRead(place="t", format="f", rows=count, kept=count),), ())


def of_rates(rate_per_s, step_s=3600.0, kinds=("all",), seen=None, dated=False):
    rates = np.atleast_2d(np.asarray(rate_per_s, dtype=float))
    if seen is None:
        sample = Sample(np.array([10.0, 20.0, 40.0]), np.ones(3))
        seen = (Seen(sample, sample, count=1000),) * len(kinds)
    counted = Counted(0.0, step_s, rates, kinds, dated, seen)
    files = (FileRead(place="r", format="f", rows=rates.shape[1], kept=rates.shape[1]),)
    return Reading(None, counted, files, ())
