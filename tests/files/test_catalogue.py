import os
from collections.abc import Callable
from pathlib import Path

import pytest
from example_forecast import Collect

from capplan.files import catalogue

Put = Callable[..., Path]

HEAD = "version: 1\nname: x\n"


@pytest.fixture
def shelves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Put:
    """The three folders that are searched; `shipped` stands in for the installed package."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAPPLAN_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(catalogue.capplan, "__file__", str(tmp_path / "site/capplan/__init__.py"))

    def put(where: str, text: str = HEAD) -> Path:
        root = {"own": tmp_path, "home": tmp_path / "home"}
        shelf, _, rest = where.partition("/")
        path = root.get(shelf, tmp_path / "site/capplan/shipped") / rest
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return put


def test_the_nearest_folder_wins(shelves: Put) -> None:
    shipped = shelves("shipped/fleets/one.yaml")
    assert catalogue.find("fleets", "one") == shipped
    home = shelves("home/fleets/one.yaml")
    assert catalogue.find("fleets", "one") == home
    shelves("own/fleets/one.yaml")
    assert catalogue.find("fleets", "one") == Path("fleets/one.yaml")


def test_profiles_are_found_in_subfolders_by_either_name(shelves: Put) -> None:
    path = shelves("shipped/profiles/h200-sxm/kimi-k2.5-int4-tp8.yaml")
    assert catalogue.find("profiles", "kimi-k2.5-int4-tp8") == path
    assert catalogue.find("profiles", "h200-sxm/kimi-k2.5-int4-tp8") == path
    assert catalogue.names("profiles") == ["kimi-k2.5-int4-tp8"]


def test_what_ends_like_a_file_or_is_one_is_a_path(shelves: Put, tmp_path: Path) -> None:
    shelves("shipped/fleets/one.yaml")
    (tmp_path / "one").write_text("")
    assert catalogue.find("fleets", "one") == Path("one")
    assert catalogue.find("fleets", "gone.yaml") == Path("gone.yaml")


@pytest.mark.usefixtures("shelves")
def test_a_pipe_is_a_path() -> None:
    read_end, write_end = os.pipe()
    try:
        assert catalogue.find("fleets", f"/dev/fd/{read_end}") == Path(f"/dev/fd/{read_end}")
    finally:
        os.close(read_end)
        os.close(write_end)


def test_a_folder_is_named_as_one_unless_a_name_is_meant(
    shelves: Put, tmp_path: Path, complaints: Collect
) -> None:
    path = shelves("shipped/fleets/one.yaml")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    assert catalogue.find("fleets", "one") == path
    assert complaints(catalogue.find, "fleets", "two") == [
        "fleet: is a folder, not a file, found two\n    known fleets: one"
    ]


@pytest.mark.usefixtures("shelves")
def test_a_name_that_is_too_long_is_a_complaint(complaints: Collect) -> None:
    assert complaints(catalogue.find, "fleets", "x" * 300) == [
        f"{'x' * 300}: cannot be read: File name too long"
    ]


def test_an_unknown_name_is_answered_with_near_or_all_names(
    shelves: Put, complaints: Collect
) -> None:
    assert complaints(catalogue.find, "fleets", "two") == [
        (
            "fleet: is neither a file nor one of the fleets, found two\n"
            "    there are no fleets yet: give a file"
        )
    ]
    shelves("shipped/fleets/h200-eight.yaml")
    shelves("home/fleets/b200.yaml")
    assert complaints(catalogue.find, "fleets", "h200-eigth") == [
        (
            "fleet: is neither a file nor one of the fleets, found h200-eigth\n"
            "    did you mean h200-eight?"
        )
    ]
    assert complaints(catalogue.find, "fleets", "zzz") == [
        (
            "fleet: is neither a file nor one of the fleets, found zzz\n"
            "    known fleets: b200, h200-eight"
        )
    ]


def test_one_name_in_two_subfolders_is_not_guessed(shelves: Put, complaints: Collect) -> None:
    shelves("shipped/profiles/a/x.yaml")
    path = shelves("shipped/profiles/b/x.yaml")
    assert complaints(catalogue.find, "profiles", "x") == [
        "profile: is the name of several files, found x\n    write a/x, b/x"
    ]
    assert catalogue.find("profiles", "b/x") == path


@pytest.mark.parametrize(
    "model",
    [
        "model:\n  # ours\n  name: kimi-k2.5\n  parameters_total: 1e12\n",
        'model: {parameters_total: 1, name: "kimi-k2.5"}\n',
        "model:\n    parameters_total: 1\n\n    name: 'kimi-k2.5'   # as published\n",
    ],
)
def test_profiles_of_a_model_are_found_by_their_first_lines(shelves: Put, model: str) -> None:
    path = shelves("shipped/profiles/g/a.yaml", HEAD + model + "steps: [[1, 2],\n" * 5000)
    shelves("shipped/profiles/g/b.yaml", HEAD + "model:\n  name: other\n")
    shelves("shipped/profiles/g/c.yaml", "- [broken")
    shelves("shipped/profiles/g/d.yaml", "\x1b")
    assert catalogue.profiles_for("kimi-k2.5") == [path]


def test_an_own_profile_hides_the_shipped_one_of_the_same_name(shelves: Put) -> None:
    shelves("shipped/profiles/g/a.yaml", "model: {name: m}\n")
    home = shelves("home/profiles/g/a.yaml", "model: {name: m}\n")
    assert catalogue.profiles_for("m") == [home]


def test_a_checkout_ships_its_top_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    top = Path(__file__).parents[2]
    assert catalogue._folders("models")[2] == top / "models"


def test_the_home_folder_follows_xdg(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CAPPLAN_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert catalogue._folders("fleets")[1] == Path("/data/capplan/fleets")
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", "/home/a")
    assert catalogue._folders("fleets")[1] == Path("/home/a/.local/share/capplan/fleets")
