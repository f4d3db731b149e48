"""Doctests import every module; those that measure only where what they need is installed."""

import importlib.util
import sys

from hypothesis import HealthCheck, settings

# Tests say nothing of seconds: on a busy machine any example may be slow.
settings.register_profile("any speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any speed")

pytest_plugins = ["checkpoint_fixtures"]


def _has(name: str) -> bool:
    if name in sys.modules:
        return sys.modules[name] is not None
    return importlib.util.find_spec(name) is not None


_TORCH = ["capplan/profiler/*.py", "capplan/cli/profile_run.py"]
_CHECKPOINTS = [
    "capplan/profiler/cached.py",
    "capplan/profiler/checkpoint.py",
    "capplan/profiler/real_text.py",
    "capplan/profiler/routing/answer.py",
    "capplan/profiler/speculation/mtp.py",
    "capplan/cli/acceptance_run.py",
    "capplan/cli/routing_run.py",
    "tests/tiny_moe.py",
]

collect_ignore_glob = ([] if _has("torch") else _TORCH) + (
    [] if _has("torch") and _has("transformers") else _CHECKPOINTS
)
