"""What the documents say is what the program does."""

import re
from pathlib import Path

import pytest

from capplan.files.catalogue import names

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_the_readme_shows_what_make_plan_prints(capplan):
    makefile = (ROOT / "Makefile").read_text()
    found = re.search(r"^FORECAST \?= (\S+)$", makefile, re.MULTILINE)
    assert found is not None
    printed = capplan("plan", str(ROOT / found.group(1))).stdout.splitlines()
    block = README.split("left out:\n\n```\n")[1].split("```")[0]
    found = -1
    for line in filter(None, map(str.strip, block.splitlines())):
        start = line.removesuffix(" ...")
        places = [n for n, said in enumerate(printed) if said.strip().startswith(start)]
        later = [n for n in places if n > found]
        assert later, line  # there, and in the order of the program
        assert line.endswith("...") or printed[later[0]].strip() == line
        found = later[0]


@pytest.mark.parametrize(
    "command",
    [
        "plan",
        "profile",
        "profile acceptance",
        "profile routing",
        "compose",
        "simulate",
        "show",
        "backtest",
        "schema",
    ],
)
def test_every_command_has_help_and_stands_in_the_changelog(capplan, command):
    assert f"capplan {command}" in (ROOT / "CHANGELOG.md").read_text()
    assert capplan(*command.split(), "--help").returncode == 0


def test_every_shipped_forecast_runs(capplan):
    for name in names("forecasts"):
        assert capplan("plan", "--screen", name, "--format", "json").returncode == 0, name


def test_links_in_the_documents_lead_somewhere():
    for document in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), (document.name, target)
