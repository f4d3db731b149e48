#!/usr/bin/env bash
# Builds the wheel, installs it alone in a fresh environment, and plans from another folder:
# profiles, fleets, forecasts and models must be inside, and torch must not be needed.
set -euo pipefail
python=${1:?usage: check_wheel.sh PYTHON}
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$work" "$root"
"$python" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$work"/capplan-*.whl
cd "$work"
venv/bin/capplan plan three-classes servegen-m-large --format json -o plan.json >/dev/null
venv/bin/python - <<'PYTHON'
import json
import sys

plans = json.load(open("plan.json"))["plans"]
assert [plan["forecast"] for plan in plans] == ["three-classes", "servegen-m-large"]
assert all(p["placement"]["gpus"] > 0 for plan in plans for p in plan["policies"])
import capplan.planner.chain
from capplan.files.catalogue import find, names
from capplan.files.prompts import read_prompts

assert sum(len(read_prompts(find("prompts", name))) for name in names("prompts")) == 60
assert "torch" not in sys.modules
print("wheel: planned", len(plans), "forecasts without a checkout and without torch")
PYTHON
