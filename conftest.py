"""Doctests import every module; those of the profiler only where torch is installed."""

import importlib.util
import sys


def _has_torch() -> bool:
    if "torch" in sys.modules:
        return sys.modules["torch"] is not None
    return importlib.util.find_spec("torch") is not None


collect_ignore_glob = (
    [] if _has_torch() else ["capplan/profiler/*.py", "capplan/cli/profile_run.py"]
)
