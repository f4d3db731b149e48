"""`capplan plan` as a user meets it: output, files, exit codes, bad input."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from capplan.files.reader import read
from capplan.records.plan import Portfolio

ROOT = Path(__file__).parents[2]
FORECAST = (ROOT / "forecasts" / "three-classes.yaml").read_text()


def test_a_shipped_forecast_is_planned_by_name(capplan):
    ran = capplan("plan", "--screen", "three-classes")
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    for word in ("plain", "always", "by-load", "Verdict", "NOT PURCHASE-GRADE", "kW", "Caveats"):
        assert word in ran.stdout
    assert max(map(len, ran.stdout.splitlines())) <= 80
    assert "\x1b" not in ran.stdout


def test_json_is_one_object_that_its_record_reads_back(capplan):
    ran = capplan("plan", "--screen", "three-classes", "--format", "json", "-o", "plan.json")
    printed = json.loads(ran.stdout)
    assert printed["version"] == 1
    kept = capplan.folder / "plan.json"
    assert json.loads(kept.read_text()) == printed
    assert read(kept, Portfolio).plans[0].model == "kimi-k2.5"


def test_table_and_json_agree(capplan):
    table = capplan("plan", "--screen", "three-classes").stdout
    plan = json.loads(capplan("plan", "--screen", "three-classes", "--format", "json").stdout)[
        "plans"
    ][0]
    gpus = [policy["placement"]["gpus"] for policy in plan["policies"]]
    row = next(line for line in table.splitlines() if "GPUs bought" in line)
    assert [int(part.split(" (")[0]) for part in row.split("  ")[1:] if "(" in part] == gpus
    for policy in plan["policies"]:
        for pool in policy["pools"]:
            size = pool["service"]["gpus_per_replica"]
            count = pool["sizing"]["replicas"]
            assert f"{count} x {size} = {count * size}" in table


def test_several_forecasts_are_summed(capplan):
    ran = capplan("plan", "--screen", "three-classes", "servegen-m-large", "--format", "json")
    plans = json.loads(ran.stdout)["plans"]
    assert [plan["forecast"] for plan in plans] == ["three-classes", "servegen-m-large"]
    total = 0
    for plan in plans:
        chosen = plan["verdict"]["policy"]
        total += next(p for p in plan["policies"] if p["policy"] == chosen)["placement"]["gpus"]
    table = capplan("plan", "--screen", "three-classes", "servegen-m-large").stdout
    last = next(line for line in reversed(table.splitlines()) if line.strip().startswith("all"))
    assert last.split()[1] == f"{total:,}"


def test_colour_is_for_terminals_and_can_be_refused(capplan):
    # `script` gives the program a terminal.
    def on_a_terminal(**variables: str) -> str:
        command = f"{sys.executable} -m capplan plan --screen three-classes"
        ran = subprocess.run(
            ["script", "-qec", command, "/dev/null"],
            cwd=capplan.folder,
            env={"PATH": "/usr/bin:/bin", "TERM": "xterm", "COLUMNS": "80", **variables},
            capture_output=True,
            text=True,
            check=True,
        )
        return ran.stdout

    assert "\x1b[1m" in on_a_terminal()
    assert "\x1b[3" not in on_a_terminal(NO_COLOR="1")


def write(capplan, text: str) -> str:
    (capplan.folder / "f.yaml").write_text(text)
    return "f.yaml"


def refused(capplan, *arguments: str) -> str:
    ran = capplan("plan", "--screen", *arguments)
    assert ran.returncode == 1, (ran.stdout, ran.stderr)
    assert ran.stdout == ""
    assert "Traceback" not in ran.stderr
    return ran.stderr


def line_of(fragment: str) -> int:
    return next(n for n, line in enumerate(FORECAST.splitlines(), 1) if fragment in line)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("growth: 1.25", "growht: 1.25", "growht: unknown key"),
        ("growth: 1.25", "growth: -1.25", "growth: must be at least 1e-06, found -1.25"),
        ("growth: 1.25", "growth: .nan", "growth: must be a finite number"),
        ("growth: 1.25", "growth: no", 'growth: must be a number, found "no"'),
        ("growth: 1.25", 'growth: "1.25"', 'growth: must be a number, found "1.25"'),
        ("ttft_p99: 800ms", "ttft_p99: 800", "ttft_p99: needs a unit"),
    ],
)
def test_bad_values_are_named_with_their_place(capplan, old, new, message):
    name = write(capplan, FORECAST.replace(old, new, 1))
    line = line_of(old)
    error = refused(capplan, name)
    assert error.startswith(f"f.yaml:{line}:")
    assert message in error


def test_yaml_1_1_traps_are_read_as_yaml_1_2(capplan):
    name = write(capplan, FORECAST.replace("growth: 1.25", "growth: 125e-2"))
    assert capplan("plan", "--screen", name).returncode == 0


def test_everything_wrong_in_all_files_is_said_at_once(capplan):
    bad = FORECAST.replace("growth: 1.25", "growth: 0").replace("cv: 0.6", "cv: -1")
    name = write(capplan, bad)
    (capplan.folder / "fleet.yaml").write_text("version: 1\n")
    error = refused(capplan, name, "--fleet", "fleet.yaml", "--profile", "kimi-k2.5-int4")
    assert "f.yaml" in error
    assert "growth" in error
    assert "cv" in error
    assert "fleet.yaml" in error
    assert "kimi-k2.5-int4-tp8" in error  # the near name


@pytest.mark.parametrize("policy", ["off", "always:0", "plain,sometimes", ""])
def test_unknown_policies_are_refused(capplan, policy):
    error = refused(capplan, "three-classes", "--policy", policy)
    assert "each must be plain, always, always:N or by-load" in error


def test_a_profile_of_another_model_is_refused(capplan):
    error = refused(capplan, "three-classes", "--profile", "llama-3.1-70b-fp8-tp4")
    assert "must be the forecast's model, kimi-k2.5, found llama-3.1-70b" in error


def test_a_model_without_a_profile_says_what_there_is(capplan):
    name = write(capplan, FORECAST.replace("model: kimi-k2.5", "model: mistral-7b"))
    error = refused(capplan, name)
    assert "mistral-7b, profiled on nothing" in error
    assert "llama-3.1-70b-fp8-tp4" in error


def test_objectives_no_batch_meets_exit_3_with_the_nearest_value(capplan):
    name = write(capplan, FORECAST.replace("tpot_p95: 40ms", "tpot_p95: 1ms"))
    ran = capplan("plan", "--screen", name)
    assert ran.returncode == 3
    assert ran.stdout == ""
    assert "one request alone misses tpot_p95 of code-completion" in ran.stderr
    assert "nearest feasible tpot_p95_s" in ran.stderr


def test_nothing_is_half_written(capplan):
    kept = capplan.folder / "plan.json"
    kept.write_text("before")
    name = write(capplan, FORECAST.replace("tpot_p95: 40ms", "tpot_p95: 1ms"))
    assert capplan("plan", "--screen", name, "-o", "plan.json").returncode == 3
    assert kept.read_text() == "before"
    assert capplan("plan", "--screen", "three-classes", "-o", "missing/plan.json").returncode == 1
    assert sorted(p.name for p in capplan.folder.iterdir()) == ["f.yaml", "plan.json"]


def test_the_users_own_profile_goes_before_the_shipped_one(capplan):
    shipped = (ROOT / "profiles/h200-sxm/kimi-k2.5-int4-tp8.yaml").read_text()
    own = capplan.folder / "profiles" / "h200-sxm"
    own.mkdir(parents=True)
    (own / "kimi-k2.5-int4-tp8.yaml").write_text(
        shipped.replace("max_batch: 256", "max_batch: 17", 1)
    )
    ran = capplan("plan", "--screen", "three-classes", "--format", "json")
    plan = json.loads(ran.stdout)["plans"][0]
    assert plan["policies"][0]["pools"][0]["service"]["batch_limits"]["engine"] == 17


@pytest.mark.parametrize("arguments", [("--help",), ("plan", "--help"), ("schema", "--help")])
def test_help_imports_no_arrays(arguments):
    code = (
        "import sys\n"
        "from capplan.cli.app import main\n"
        f"sys.argv = ['capplan', *{arguments!r}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'scipy', 'torch'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "Usage" in ran.stdout


@pytest.mark.parametrize(
    ("options", "heavy"), [(("--screen",), {"numba", "scipy", "torch"}), ((), {"torch"})]
)
def test_planning_imports_no_more_than_it_needs(options, heavy):
    code = (
        "import sys\n"
        "from capplan.cli.app import main\n"
        f"sys.argv = ['capplan', 'plan', 'servegen-m-large', *{options!r}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"sys.exit(', '.join(sorted({heavy!r} & set(sys.modules))) or 0)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(
    "kind", ["forecast", "profile", "fleet", "model", "drafter", "plan", "anatomy"]
)
def test_the_kept_schemas_are_current(capplan, kind):
    printed = capplan("schema", kind).stdout
    assert json.loads(printed) == json.loads((ROOT / "schemas" / f"{kind}.json").read_text())


def test_the_shipped_dense_profile_plans_too(capplan):
    dense = FORECAST.replace("model: kimi-k2.5", "model: llama-3.1-70b")
    for workload in ("coding", "agent"):
        dense = dense.replace(f"acceptance_workload: {workload}", "acceptance_workload: chat")
    ran = capplan("plan", "--screen", write(capplan, dense), "--format", "json")
    assert ran.returncode == 0, ran.stderr
    plan = json.loads(ran.stdout)["plans"][0]
    sizes = {
        pool["service"]["gpus_per_replica"]
        for policy in plan["policies"]
        for pool in policy["pools"]
    }
    assert sizes == {4}


def test_a_plan_never_replaces_its_own_forecast(capplan):
    name = write(capplan, FORECAST)
    assert "is one of the inputs" in refused(capplan, name, "-o", name)
    assert (capplan.folder / name).read_text() == FORECAST


def test_complaints_of_the_planner_name_the_line_too(capplan):
    name = write(capplan, FORECAST.replace("acceptance_workload: agent", "acceptance_workload: x"))
    line = line_of("acceptance_workload: agent")
    error = refused(capplan, name)
    assert error.startswith(f"f.yaml:{line}:5: classes.2.acceptance_workload: must be one that")


def test_output_that_cannot_be_written_is_said_in_a_line():
    command = [sys.executable, "-m", "capplan", "plan", "--screen", "three-classes"]
    with open("/dev/full", "w") as full:  # noqa: PTH123
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr == "stdout: cannot be written: No space left on device\n"


def test_a_name_that_the_terminal_cannot_show_is_shown_as_far_as_it_can(capplan):
    name = write(capplan, FORECAST.replace("name: three-classes", "name: \u65e5\u672c"))
    ran = capplan("plan", "--screen", name, PYTHONIOENCODING="ascii")
    assert ran.returncode == 0
    assert ran.stdout.startswith("??: kimi-k2.5")
