"""Finds the installed package and its files without running any of its code."""

import importlib.metadata
import importlib.util
from pathlib import Path
from typing import Any, Final

import yaml

from capplan.errors import Complaint, InputError

PACKAGE: Final = "aiconfigurator-core"
LICENCE: Final = "Apache-2.0"
REMEDY: Final = "pip install 'capplan[silicon]'"


def systems() -> Path:
    """The folder of the tables.

    Raises:
        InputError: The package is not installed.
    """
    # find_spec of a top-level package does not import it, and its compiled module stays unloaded.
    spec = importlib.util.find_spec("aiconfigurator_core")
    if spec is None or spec.origin is None:
        rule = f"needs operator times of the package {PACKAGE}, which is not installed"
        raise InputError([Complaint("silicon", "", rule, remedy=REMEDY)])
    return Path(spec.origin).parent / "systems"


def version() -> str:
    """The package's version."""
    return importlib.metadata.version(PACKAGE)


def described(system: str) -> dict[str, Any]:
    """What the package says of a GPU and its node."""
    text = (systems() / f"{system}.yaml").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text))
