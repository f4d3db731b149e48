"""Finds files by name: the user's own first, then those that come with capplan."""

import difflib
import os
import stat
from pathlib import Path
from typing import Literal

import capplan
from capplan.errors import Complaint, InputError
from capplan.files.document import compose_start

Kind = Literal["profiles", "fleets", "models", "drafters", "forecasts", "prompts"]

_YAML = (".yaml", ".yml", ".json")
_SUFFIXES: dict[Kind, tuple[str, ...]] = {"prompts": (".jsonl", ".txt")}
"""Endings of a kind's files; _YAML where none are given."""
_HEAD_BYTES = 4096
"""A profile names its model before its tables (`writer.write_record` keeps field order)."""
_MOST_LISTED = 20


def find(kind: Kind, name_or_path: str) -> Path:
    """The file an argument means.

    What exists (a file or a pipe, not a folder), or ends like a file, is a path. Anything else is
    a name, looked up in `./<kind>/`, then in the user's own folder, then among the shipped files:
    a file's name without its ending, or with its subfolder (`h200-sxm/kimi-k2.5-int4-tp8`). The
    first folder that has it wins.

    Raises:
        InputError: No such name (near names are given), a folder, or two files of a folder have
            the name.
    """
    path = Path(name_or_path)
    mode = _mode(path)
    if name_or_path.endswith(_suffixes(kind)) or not (mode is None or stat.S_ISDIR(mode)):
        return path
    for folder in _folders(kind):
        found = [
            file for name, file in _files(folder, kind).items() if _is_called(name, name_or_path)
        ]
        if len(found) == 1:
            return found[0]
        if found:
            listed = ", ".join(sorted(_relative(file, folder) for file in found))
            raise _unclear(kind, name_or_path, "is the name of several files", f"write {listed}")
    rule = f"is neither a file nor one of the {kind}" if mode is None else "is a folder, not a file"
    raise _unclear(kind, name_or_path, rule, _near(kind, path))


def names(kind: Kind) -> list[str]:
    """Every name that `find` knows, sorted, without subfolders."""
    return sorted({Path(name).name for folder in _folders(kind) for name in _files(folder, kind)})


def profiles_for(model: str) -> list[Path]:
    """The profiles of a model, own before shipped; one shadowed by an own of the same name not.

    Only the first 4 KiB of each file are looked at.
    """
    found: dict[str, Path] = {}
    for folder in _folders("profiles"):
        found = _files(folder, "profiles") | found
    return [path for path in found.values() if _model_of(path) == model]


def _mode(path: Path) -> int | None:
    """Type of what stands at a path, None where there is nothing.

    Raises:
        InputError: The system does not say: a folder above is closed, the name is too long.
    """
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):  # the last: a NUL inside
        return None
    except OSError as error:
        rule = f"cannot be read: {error.strerror or error}"
        raise InputError([Complaint(place=str(path), key="", rule=rule)]) from error


def shipped() -> Path:
    """The folder of all that comes with capplan."""
    package = Path(capplan.__file__).parent
    checkout = package.parent
    return checkout if (checkout / "pyproject.toml").is_file() else package / "shipped"


def _folders(kind: Kind) -> list[Path]:
    """Where files of a kind lie, in order of search."""
    return [Path(kind), _home() / kind, shipped() / kind]


def _home() -> Path:
    if own := os.environ.get("CAPPLAN_HOME"):
        return Path(own)
    # Not expanduser: a container's user may have no home.
    data = os.environ.get("XDG_DATA_HOME") or Path(os.environ.get("HOME", "."), ".local", "share")
    return Path(data) / "capplan"


def _suffixes(kind: Kind) -> tuple[str, ...]:
    return _SUFFIXES.get(kind, _YAML)


def _files(folder: Path, kind: Kind) -> dict[str, Path]:
    """Files of a folder and its subfolders, by name with subfolder and without ending."""
    return {
        _relative(path, folder): path
        for path in sorted(folder.rglob("*"))
        if path.suffix in _suffixes(kind) and path.is_file()
    }


def _relative(path: Path, folder: Path) -> str:
    return path.relative_to(folder).with_suffix("").as_posix()


def _is_called(name: str, wanted: str) -> bool:
    return wanted in (name, name.rpartition("/")[2])


def _near(kind: Kind, path: Path) -> str:
    known = names(kind)
    if near := difflib.get_close_matches(path.name, known, n=3):
        return f"did you mean {' or '.join(near)}?"
    if not known:
        return f"there are no {kind} yet: give a file"
    more = ", …" if len(known) > _MOST_LISTED else ""
    return f"known {kind}: {', '.join(known[:_MOST_LISTED])}{more}"


def _unclear(kind: Kind, argument: str, rule: str, remedy: str) -> InputError:
    key = kind.removesuffix("s")
    return InputError([Complaint(place="", key=key, rule=rule, found=argument, remedy=remedy)])


def _model_of(path: Path) -> object:
    tree = compose_start(path, _HEAD_BYTES)
    model = tree.get("model") if isinstance(tree, dict) else None
    return model.get("name") if isinstance(model, dict) else None
