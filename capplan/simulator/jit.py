"""Compilation of the kernel with numba, where numba is installed (extra `fast`)."""

import hashlib
import os
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def compiled() -> bool:
    """Whether simulations run compiled; else the same functions run as plain Python, slower."""
    return find_spec("numba") is not None and os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"


def jit(function: Callable[P, R]) -> Callable[P, R]:
    """Compiles a function of the kernel at its first call, or leaves it as it is."""
    if not compiled():
        return function
    import numba

    # numba's cache looks for changes in the function's own file only, not in what it calls; it
    # names its files after the function, so the sources' digest in the name keeps it honest.
    function.__qualname__ = f"{function.__qualname__}_{_digest()}"
    # Passing tuples of arrays on is what costs: inlining, and counting no references, which
    # nothing here needs since nothing is allocated, makes steps fifteen times faster.
    options = {"cache": True, "nogil": True, "forceinline": True, "_nrt": False}
    done: Callable[P, R] = numba.njit(error_model="numpy", **options)(function)
    return done


@cache
def _digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
