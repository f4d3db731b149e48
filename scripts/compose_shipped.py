"""Writes the composed profiles that are shipped: python scripts/compose_shipped.py.

Needs the extra `silicon`. Coarse grids, so that each file stays small; `capplan compose` writes
finer ones.
"""

import datetime as dt
from pathlib import Path
from typing import Final

from capplan.cli.compose_run import Choice, compose
from capplan.files.writer import write_record

PROFILES: Final = Path(__file__).parents[1] / "profiles"
DATE: Final = dt.date(2026, 12, 1)
PAIRS: Final = (
    ("qwen3-30b-a3b", Choice("h100-sxm:1")),
    ("gpt-oss-120b", Choice("h100-sxm:1")),
    ("llama-3.1-70b", Choice("h100-sxm:4", weights="fp8")),
    ("llama-4-scout", Choice("h100-sxm:4")),
    ("qwen3-235b-a22b", Choice("h200-sxm:4", weights="fp8_block")),
    ("minimax-m2.5", Choice("h200-sxm:4")),
    ("deepseek-v3", Choice("h200-sxm:8")),
    ("glm-5", Choice("h200-sxm:8", weights="fp8_block")),
    ("kimi-k2.5", Choice("b200-sxm:8", experts="nvfp4")),
    ("qwen3.5-397b-a17b", Choice("b200-sxm:8", weights="fp8_block")),
)
"""Models of 30B to 1T, with 8 to 512 experts or none, on three GPUs."""


def main() -> None:
    """Writes every profile and says how large it is."""
    for model, choice in PAIRS:
        profile = compose(model, coarse(choice), DATE).composed.profile
        path = PROFILES / profile.deployment.gpu / f"{profile.name}.yaml"
        path.parent.mkdir(exist_ok=True)
        write_record(path, profile)
        print(f"{path.relative_to(PROFILES)}: {path.stat().st_size / 1e3:.0f} KB")


def coarse(choice: Choice) -> Choice:
    """The same on a grid for a small file."""
    return Choice(**{**choice.__dict__, "coarse": True})


if __name__ == "__main__":
    main()
