"""Tests of operator tables are skipped where the package that brings them is missing."""

import importlib.util

import pytest

needs_silicon = pytest.mark.skipif(
    importlib.util.find_spec("aiconfigurator_core") is None
    or importlib.util.find_spec("pyarrow") is None,
    reason="needs the extra silicon",
)
