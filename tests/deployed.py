"""Deployments that several tests compose."""

from capplan.composer import Asked, composed
from capplan.files.catalogue import find
from capplan.files.reader import read
from capplan.importers.silicon import silicon
from capplan.physics.sharding import Split
from capplan.records.architecture import Architecture


def model(name):
    return read(find("models", name), Architecture)


def deployed(name, gpu="h200-sxm", engine="sglang", split=(8, 8, 1), **other):
    """A composition; every matrix in bf16 unless said otherwise."""
    precisions = {"weights": "bf16", "experts": None, "cache": "bf16", "routing": None} | other
    asked = Asked(model(name), gpu=gpu, split=Split(*split), engine=engine, **precisions)
    return composed(asked, silicon(gpu, engine))
