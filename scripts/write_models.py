"""Writes models/*.yaml: `write_models.py FOLDER` with configuration files in the folder.

What is written is this project's own record, not the file: shapes that decide memory and compute,
and the makers' figures from model_catalogue.yaml for checking.
"""

import sys
from pathlib import Path
from typing import Any

from capplan.files.document import read_document
from capplan.files.writer import write_record
from capplan.importers.hugging_face.config import architecture
from capplan.importers.hugging_face.stored import Quantization
from capplan.records.architecture import Architecture, Published
from capplan.records.caveat import Source

CATALOGUE = Path(__file__).with_name("model_catalogue.yaml")
MODELS = Path(__file__).parents[1] / "models"


def main(folder: Path) -> None:
    """Writes a file for each entry of the catalogue."""
    for name, entry in read_document(CATALOGUE).tree["models"].items():
        write_record(MODELS / f"{name}.yaml", lean(record(name, entry, folder)))
        print(name)


def record(name: str, entry: dict[str, Any], folder: Path) -> Architecture:
    """The anatomy of one entry, with its sources."""
    document = read_document(folder / f"{entry['file']}.json")
    beside = folder / "hf_quant" / f"{entry['file'].replace('__', '--')}_hf_quant_config.json"
    narrowed = None
    if beside.is_file():
        narrowing = read_document(beside)
        narrowed = Quantization(narrowing.tree, narrowing.place)
    tree = document.tree | entry.get("changes", {})
    found = architecture(tree, name, document.place, narrowed)
    changes: dict[str, Any] = {"source": source(entry), "published": published(entry)}
    if entry.get("stored") is False:
        changes["stored"] = None
    return found.model_copy(update=changes)


def source(entry: dict[str, Any]) -> Source:
    """Where the anatomy stands."""
    where = f"https://huggingface.co/{entry['repo']}/blob/main/config.json"
    return Source(what="all of the anatomy; the text model alone", where=where)


def published(entry: dict[str, Any]) -> Published | None:
    """What the makers say."""
    if "total" not in entry:
        return None
    by = entry["by"]
    where = f"https://huggingface.co/{entry['repo']}, {by}"
    active = entry.get("active")
    return Published(
        parameters_total=float(entry["total"]),
        parameters_active=None if active is None else float(active),
        source=Source(
            what="total and activated parameters" if active else "total parameters",
            where=by if "arXiv" in by or "http" in by or "report" in by.lower() else where,
        ),
        note=entry.get("note"),
    )


def lean(model: Architecture) -> Architecture:
    """The same record with nothing set that is as usual, so that nothing more is written."""
    return Architecture.model_validate_json(model.model_dump_json(exclude_defaults=True))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
