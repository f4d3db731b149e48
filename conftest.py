"""What is left out where an extra is missing.

Doctests import every module; those of the profiler only where torch is installed. Tests that read
operator tables are skipped where the package that brings them is missing.
"""

import importlib.util
import sys

import pytest


def _has(package: str) -> bool:
    if package in sys.modules:
        return sys.modules[package] is not None
    return importlib.util.find_spec(package) is not None


collect_ignore_glob = (
    [] if _has("torch") else ["capplan/profiler/*.py", "capplan/cli/profile_run.py"]
)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips what needs the extra silicon."""
    wanted = item.get_closest_marker("silicon") is not None
    if wanted and not (_has("aiconfigurator_core") and _has("pyarrow")):
        pytest.skip("needs the extra silicon")
