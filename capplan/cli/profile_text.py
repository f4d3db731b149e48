"""A profile's file with one part renewed."""

from pathlib import Path

import typer
from yaml import YAMLError

from capplan.files.emitter import to_yaml
from capplan.files.mend import mended
from capplan.files.text import read_text
from capplan.records.profile import Profile

LIMIT_BYTES = 16 << 20


def with_renewed(path: Path, profile: Profile, key: str) -> str:
    """The file's text with one key taken from a profile; all else as people have it.

    Where that cannot be done in place the whole file is written anew, and the user is told.
    """
    fresh = to_yaml(profile)
    try:
        return mended(read_text(path, LIMIT_BYTES), fresh, [key])
    except (ValueError, YAMLError):
        typer.echo(f"{path}: cannot be changed in place: its comments are lost", err=True)
        return fresh
