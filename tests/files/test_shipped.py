from pathlib import Path

import pytest

from capplan.files import catalogue
from capplan.files.reader import read, read_forecast
from capplan.records.architecture import Architecture
from capplan.records.fleet import Fleet
from capplan.records.known_drafter import KnownDrafter
from capplan.records.profile import Profile

TOP = Path(__file__).parents[2]
READERS = {
    "profiles": lambda path: read(path, Profile),
    "fleets": lambda path: read(path, Fleet),
    "models": lambda path: read(path, Architecture),
    "drafters": lambda path: read(path, KnownDrafter),
    "forecasts": read_forecast,
}
FILES = [path.relative_to(TOP) for kind in READERS for path in sorted((TOP / kind).rglob("*.yaml"))]


@pytest.mark.parametrize("path", FILES, ids=str)
def test_every_shipped_file_is_right(path: Path) -> None:
    READERS[path.parts[0]](TOP / path)


@pytest.mark.parametrize("path", FILES, ids=str)
def test_every_shipped_file_is_found_by_its_name(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAPPLAN_HOME", str(tmp_path))
    name = path.relative_to(path.parts[0]).with_suffix("").as_posix()
    assert catalogue.find(path.parts[0], name) == TOP / path


@pytest.mark.parametrize("path", FILES, ids=str)
def test_every_shipped_file_calls_itself_by_its_name(path: Path) -> None:
    record = READERS[path.parts[0]](TOP / path)
    assert record.name == path.stem


@pytest.mark.parametrize("path", [path for path in FILES if path.parts[0] == "profiles"], ids=str)
def test_every_shipped_profile_is_found_by_its_model(path: Path) -> None:
    record = read(TOP / path, Profile)
    assert (TOP / path).resolve() in [
        found.resolve() for found in catalogue.profiles_for(record.model.name)
    ]


@pytest.mark.parametrize("path", [path for path in FILES if path.parts[0] == "drafters"], ids=str)
def test_every_known_drafter_drafts_for_known_models_of_its_vocabulary(path: Path) -> None:
    known = read(TOP / path, KnownDrafter)
    for name in known.drafts_for:
        model = read(catalogue.find("models", name), Architecture)
        if known.drafter is None:
            assert model.prediction is not None
        else:
            assert known.drafter.vocabulary == model.vocabulary
