"""Tests of operator tables: marked, and skipped where the package that brings them is missing."""

import importlib.util
from collections.abc import Callable
from typing import Final

import pytest

MISSING: Final = (
    importlib.util.find_spec("aiconfigurator_core") is None
    or importlib.util.find_spec("pyarrow") is None
)
SILICON: Final = [
    pytest.mark.silicon,
    pytest.mark.skipif(MISSING, reason="needs the extra silicon"),
]
"""Marks of a whole file."""


def needs_silicon(test: Callable[..., None]) -> Callable[..., None]:
    """Marks one test."""
    for mark in SILICON:
        test = mark(test)
    return test
