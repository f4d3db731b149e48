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
    lines = {line.strip() for line in printed}
    block = README.split("begins:\n\n```\n")[1].split("```")[0]
    for line in block.splitlines():
        if line.endswith("..."):
            assert any(said.startswith(line.removesuffix(" ...")) for said in lines), line
        else:
            assert line.strip() in lines | {""}, line


@pytest.mark.parametrize("command", ["plan", "profile", "schema"])
def test_every_command_has_help_and_stands_in_the_changelog(capplan, command):
    assert f"capplan {command}" in (ROOT / "CHANGELOG.md").read_text()
    assert capplan(command, "--help").returncode == 0


def test_every_shipped_forecast_runs(capplan):
    for name in names("forecasts"):
        assert capplan("plan", name, "--format", "json").returncode == 0, name


def test_links_in_the_documents_lead_somewhere():
    for document in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), (document.name, target)
