"""Writes the shipped, composed profiles: python scripts/compose_profiles.py."""

from pathlib import Path

from capplan.files.writer import write_record
from composed.profiles import shipped

PROFILES = Path(__file__).parents[1] / "profiles"

if __name__ == "__main__":
    for name, profile in shipped().items():
        path = PROFILES / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_record(path, profile)
        print(path)
