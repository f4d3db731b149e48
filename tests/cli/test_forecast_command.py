"""`capplan forecast` as a user meets it."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from capplan.files.reader import read_forecast
from capplan.records.history import History

ROOT = Path(__file__).parents[2]
HOURLY = str(ROOT / "forecasts" / "servegen-m-large.csv")
AZURE = str(ROOT / "tests" / "importers" / "traces" / "data" / "azure_2023_conv.csv")
NEW = ("--model", "kimi-k2.5", "--objectives", "ttft_p99=3s,tpot_p95=50ms", "--workload", "chat")


@pytest.fixture
def week(tmp_path):
    """A week of requests of two classes, a few thousand a day."""
    rng = np.random.default_rng(1)
    at = np.sort(rng.uniform(0, 8 * 86_400, 40_000))
    keep = rng.uniform(0, 1, len(at)) < 0.6 + 0.4 * np.sin(2 * np.pi * at / 86_400)
    path = tmp_path / "week.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["at", "in", "out", "route"])
        for place, second in enumerate(at[keep] + 1_760_000_000):
            row = (rng.integers(1, 4000), rng.integers(1, 500), ("chat", "code")[place % 2])
            writer.writerow([f"{second:.3f}", *row])
    return str(path)


MAP = ("--map", "arrival=at:s,prompt=in,output=out,class=route")


def test_a_look_at_the_history_fits_80_columns(capplan, week):
    ran = capplan("forecast", week, *MAP)

    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    assert max(map(len, ran.stdout.splitlines())) <= 80
    for word in ("chat prompt", "code answer", "rank correlation", "held back", "a mark an hour"):
        assert word in ran.stdout
    days = [line for line in ran.stdout.splitlines() if line.strip().startswith("Fri 2025-10-10")]
    assert len(days[0].split()[-1]) == 24


def test_a_forecast_of_rates_and_lengths_can_be_planned(capplan):
    ran = capplan("forecast", HOURLY, AZURE, "-o", "f.yaml", *NEW)
    assert ran.returncode == 0, ran.stderr

    forecast = read_forecast(capplan.folder / "f.yaml")
    with Path(HOURLY).open() as file:
        rates = [float(row["mean_rps"]) for row in csv.DictReader(file)]
    assert forecast.classes[0].rate.values_per_s == pytest.approx(rates)
    planned = capplan("plan", "f.yaml", "--screen", "--policy", "plain", "--format", "json")
    assert planned.returncode == 0, planned.stderr
    assert max(json.loads(planned.stdout)["plans"][0]["demand"]["classes"][0]["rate_per_s"]) == (
        pytest.approx(max(rates))
    )


def test_the_week_to_come_is_written_with_its_band(capplan, week):
    ran = capplan("forecast", week, *MAP, "-o", "f.yaml", "--ahead", "7d", "--at", "p95", *NEW)
    assert ran.returncode == 0, ran.stderr

    forecast = read_forecast(capplan.folder / "f.yaml")
    bands = {name: rate.values_per_s for name, rate in forecast.band.quantiles.items()}
    assert [len(line) for line in bands.values()] == [168] * 6
    together = np.sum([traffic.rate.values_per_s for traffic in forecast.classes], axis=0)
    assert together == pytest.approx(bands["p95"], abs=1e-5)
    assert forecast.band.back_test.held_back_days == 3


def test_json_is_the_whole_history(capplan, week):
    ran = capplan("forecast", week, *MAP, "--format", "json")

    history = History.model_validate_json(ran.stdout)
    assert {seen.name for seen in history.classes} == {"chat", "code"}
    assert history.outlook is not None


OURS = """\
# Our assistant.
version: 1
name: ours   # as finance calls it
model: kimi-k2.5
time: {start: 2026-12-07T00:00:00Z, step: 1h}
growth: 1.25   # from sales
rate: {values_per_s: [1, 2]}
classes:
  - name: code   # editors
    share: 0.5
    input_tokens: {mean_tokens: 10, cv: 1, max_tokens: 100}
    output_tokens: {mean_tokens: 10, cv: 1, max_tokens: 100}
    # agreed with product
    objectives: {ttft_p99: 2s, tpot_p99: 50ms}
  - name: chat
    share: 0.5
    prefix_reuse: 0.3
    input_tokens: {mean_tokens: 10, cv: 1, max_tokens: 100}
    output_tokens: {mean_tokens: 10, cv: 1, max_tokens: 100}
    objectives: {ttft_p99: 1s, tpot_p99: 40ms}
scenarios: {low: 0.8, high: 1.4}   # finance
"""
KEPT = [
    "# Our assistant.",
    "name: ours   # as finance calls it",
    "growth: 1.25   # from sales",
    "  - name: code   # editors",
    "    # agreed with product",
    "    objectives: {ttft_p99: 2s, tpot_p99: 50ms}",
    "scenarios: {low: 0.8, high: 1.4}   # finance",
]


def test_update_renews_the_traffic_and_leaves_what_people_wrote(capplan, week):
    path = capplan.folder / "ours.yaml"
    path.write_text(OURS)

    for _ in range(2):
        ran = capplan("forecast", week, *MAP, "--update", "ours.yaml")
        assert (ran.returncode, ran.stderr) == (0, "")

    text = path.read_text()
    assert [line for line in KEPT if line not in text.splitlines()] == []
    forecast = read_forecast(path)
    assert forecast.time.start.year == 2025
    assert forecast.rate is None
    assert [len(traffic.rate.values_per_s) > 150 for traffic in forecast.classes] == [True] * 2
    assert forecast.classes[0].input_tokens.max_tokens > 3000
    assert forecast.classes[1].prefix_reuse == 0.3
    assert len([line for line in forecast.caveats if "longest seen" in line]) == 1


def test_a_file_that_cannot_be_changed_in_place_is_written_anew_and_that_is_said(capplan, week):
    inline = OURS.replace(
        OURS[OURS.index("  - name: chat") : OURS.index("scenarios")],
        "  - {name: chat, share: 0.5, input_tokens: {mean_tokens: 9, cv: 1, max_tokens: 99}, "
        "output_tokens: {mean_tokens: 9, cv: 1, max_tokens: 99}, "
        "objectives: {ttft_p99: 1s, tpot_p99: 40ms}}\n",
    )
    path = capplan.folder / "ours.yaml"
    path.write_text(inline)

    ran = capplan("forecast", week, *MAP, "--update", "ours.yaml")

    assert ran.returncode == 0
    assert "comments are lost" in ran.stderr
    assert read_forecast(path).growth == 1.25


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "needs a SOURCE or --prometheus"),
        (("absent.csv",), "absent.csv: no such file"),
        ((AZURE, "--classes", "prefix:3"), "how prompts begin"),
        ((AZURE, "--classes", "some"), "must be column, one, file"),
        ((AZURE, "-o", "f.yaml"), "a new forecast needs one"),
        ((AZURE, "-o", "f.yaml", "--model", "m"), "needs a ttft and a tpot"),
        ((AZURE, "-o", "f.yaml", *NEW, "--ahead", "7d"), "seven whole days"),
        ((AZURE, "--step", "7"), "must be a duration of whole seconds"),
        ((AZURE, "--zone", "Mars/Olympus"), "must be a name like Europe/Berlin"),
        ((AZURE, "--start", "2026-01-01"), "must be a moment with its zone"),
        ((AZURE, "--at", "p42"), "must be one of p05"),
        ((HOURLY, "-o", "f.yaml", *NEW), "no source says how long its requests are"),
        (("--prometheus", "http://127.0.0.1:9"), "cannot be reached"),
    ],
)
def test_what_is_wrong_is_said_in_a_line_and_exits_with_1(capplan, arguments, said):
    ran = capplan("forecast", *arguments)

    assert ran.returncode == 1
    assert said in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not (capplan.folder / "f.yaml").exists()
    assert not (capplan.folder / "f.csv").exists()


def test_bad_rows_are_read_over_only_where_allowed(capplan):
    path = capplan.folder / "bad.csv"
    path.write_text(Path(AZURE).read_text() + "2023-11-16 18:20:00.0000000,-1,5\n")

    ran = capplan("forecast", "bad.csv")
    assert (ran.returncode, "bad.csv:202: ContextTokens" in ran.stderr) == (1, True)
    ran = capplan("forecast", "bad.csv", "--skip-bad", "1")
    assert (ran.returncode, "1 bad rows left out" in ran.stdout) == (0, True)


def test_a_source_is_not_written_over(capplan):
    (capplan.folder / "f.csv").write_text(Path(AZURE).read_text())

    assert "is one of the sources" in capplan("forecast", "f.csv", "-o", "f.yaml", *NEW).stderr


def test_the_program_starts_without_any_of_it():
    code = "import sys, capplan.cli.app; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    loaded = ran.stdout.split()
    assert not [
        name
        for name in loaded
        if name.startswith(("numpy", "pyarrow", "capplan.forecaster", "capplan.importers"))
    ]
