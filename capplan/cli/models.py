"""Models and drafters that an argument names: shipped, own, or as Hugging Face keeps them."""

from pathlib import Path

from capplan.errors import InputError
from capplan.files.catalogue import find, names
from capplan.files.document import Document, read_document
from capplan.files.reader import read
from capplan.importers.hugging_face import config, drafter
from capplan.importers.hugging_face.stored import Quantization
from capplan.records.architecture import Architecture
from capplan.records.drafter_model import DrafterModel
from capplan.records.known_drafter import KnownDrafter


def architecture(model: str) -> Architecture:
    """The model that an argument means.

    Raises:
        InputError: If there is no such model, or its file is wrong.
    """
    path = _file(model)
    if path.suffix != ".json":
        return read(path, Architecture)
    return _architecture(path, read_document(path))


def draft_model(name: str) -> Architecture | DrafterModel:
    """The drafter that an argument means: a known one, a head's file, or a small model.

    Raises:
        InputError: If there is no such drafter, or its file is wrong.
    """
    if name in names("drafters"):
        known = read(find("drafters", name), KnownDrafter).drafter
        if known is not None:
            return known
    path = _file(name)
    document = read_document(path)
    tree = document.tree if isinstance(document.tree, dict) else {}
    if path.suffix != ".json":
        return read(path, DrafterModel) if "head" in tree else read(path, Architecture)
    if "model_type" in tree and not drafter.is_drafter(tree):
        return _architecture(path, document)
    return drafter.drafter(document.tree, _name(path), document.place)


def _architecture(path: Path, document: Document) -> Architecture:
    return config.architecture(document.tree, _name(path), document.place, _quantization(path))


def _quantization(path: Path) -> Quantization | None:
    """What stands beside a configuration where modelopt has narrowed the weights."""
    beside = path.with_name("hf_quant_config.json")
    if path.name != "config.json" or not beside.is_file():
        return None
    document = read_document(beside)
    return Quantization(document.tree, document.place)


def _file(model: str) -> Path:
    """A checkpoint's folder stands for the configuration in it, unless a model has that name."""
    try:
        return find("models", model)
    except InputError:
        inside = Path(model, "config.json")
        if not inside.is_file():
            raise
        return inside


def _name(path: Path) -> str:
    """A configuration is called after its folder, as in a checkpoint, unless it has a name."""
    own = path.stem if path.stem != "config" else path.absolute().parent.name
    return own.lower()
