"""Real configuration files, as `scripts/compact_configs.py` has shortened them."""

import json
from pathlib import Path
from typing import Any

from capplan.importers.hugging_face.config import architecture
from capplan.importers.hugging_face.stored import Quantization
from capplan.records.architecture import Architecture

FILE = Path(__file__).parent / "importers" / "configs.json"


def where(path: tuple[str, ...]) -> str:
    return f"config.json:{'.'.join(map(str, path))}"


def expanded(value: Any) -> Any:
    """Undoes the shortening."""
    if isinstance(value, dict) and "@letters" in value:
        return [value["for"][ord(letter) - 97] for letter in value["@letters"]]
    if isinstance(value, dict) and "@names" in value:
        return [name for pattern, numbers in value["@names"] for name in names(pattern, numbers)]
    if isinstance(value, dict) and "@pairs" in value:
        return {
            name: one
            for pattern, numbers, one in value["@pairs"]
            for name in names(pattern, numbers)
        }
    if isinstance(value, dict):
        return {key: expanded(one) for key, one in value.items()}
    return value


def names(pattern: str, numbers: str) -> list[str]:
    if not numbers:
        return [pattern]
    runs = [run.split("-") for run in numbers.split(",")]
    found = [number for run in runs for number in range(int(run[0]), int(run[-1]) + 1)]
    return [pattern.replace("{}", str(number)) for number in found]


ENTRIES = {
    entry["file"]: entry | {"config": expanded(entry["config"])}
    for entry in json.loads(FILE.read_text())
}


def read(file: str) -> Architecture:
    entry = ENTRIES[file]
    beside = Quantization(expanded(entry["quant"]), where) if "quant" in entry else None
    return architecture(entry["config"], file, where, beside)
