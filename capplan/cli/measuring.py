"""What every command that measures needs: torch, or a word on how to have it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from capplan.errors import MeasureError

INTERRUPTED: Final = 130
"""Exit code of a run that Ctrl-C stopped."""

INSTALL: Final = {
    "torch": "pip install torch --index-url https://download.pytorch.org/whl/cpu"
    "   (for a GPU: pip install 'capplan[gpu]')",
    "transformers": "pip install 'capplan[checkpoints]'",
}


@contextmanager
def measuring() -> Iterator[None]:
    """Imports of the profiler stand inside.

    Raises:
        MeasureError: What they need is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in INSTALL:
            raise
        raise MeasureError(
            f"measuring needs {error.name}, which is not installed\n    {INSTALL[error.name]}"
        ) from error
