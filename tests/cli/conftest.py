"""The program as a user starts it: another process, its own streams."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


class Program:
    """Runs `capplan` in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "CAPPLAN_HOME": str(self.folder / "home"),
            "COLUMNS": "80",
            **variables,
        }
        return subprocess.run(
            [sys.executable, "-m", "capplan", *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def capplan(tmp_path: Path) -> Program:
    return Program(tmp_path)
