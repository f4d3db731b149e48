"""Makes the test's fixture of configuration files: `compact_configs.py INDEX OUT`.

INDEX is a CSV with the columns file, published_total_B, published_active_B, source and trust,
beside the files. What decides nothing (token numbers, sampling, vision towers) is left out, as are
experts beside the first of a layer. Lists with an entry a layer are written short: as letters that
stand for the values, and module names with `{}` for the number of the layer.
"""

import csv
import json
import re
import sys
from pathlib import Path
from typing import Any

from capplan.importers.hugging_face.unknown import HARMLESS, SAMPLING, TOKENS

KEPT = {"architectures", "model_type"}
TOWERS = ("vision_config", "audio_config")
LONG = 8
OTHER_EXPERT = re.compile(r"experts\.[1-9]")
NUMBER = re.compile(r"(?<=layers\.)\d+")


def main(index: Path, out: Path) -> None:
    """Writes one line a file."""
    rows = list(csv.DictReader(index.read_text().splitlines()))
    entries = []
    for row in rows:
        folder = index.parent
        entry = {
            "file": row["file"].removesuffix(".json"),
            "trust": "verbatim" if row["trust"].startswith("verbatim") else row["trust"],
            "source": row["source"],
            "total": float(row["published_total_B"] or 0) * 1e9 or None,
            "active": float(row["published_active_B"] or 0) * 1e9 or None,
            "config": compact(json.loads((folder / row["file"]).read_text())),
        }
        beside = row["file"].removesuffix(".json").replace("__", "--") + "_hf_quant_config.json"
        if (folder / "hf_quant" / beside).is_file():
            entry["quant"] = compact(json.loads((folder / "hf_quant" / beside).read_text()))
        entries.append(json.dumps(entry, separators=(",", ":"), allow_nan=False))
    out.write_text("[\n" + ",\n".join(entries) + "\n]\n")


def compact(value: Any) -> Any:
    """A configuration without what decides nothing."""
    if isinstance(value, dict) and len(value) > LONG and any(map(NUMBER.search, value)):
        pairs = [(name, json.dumps(one)) for name, one in value.items()]
        return {"@pairs": [[*group, json.loads(one)] for *group, one in named(pairs)]}
    if isinstance(value, dict):
        return {key: compact(one) for key, one in value.items() if decides(key, one)}
    if isinstance(value, list) and len(value) > LONG:
        if all(isinstance(one, str) for one in value) and any(map(NUMBER.search, value)):
            return {"@names": [group[:-1] for group in named([(name, "") for name in value])]}
        known = list(dict.fromkeys(json.dumps(one) for one in value))
        if len(known) <= LONG + 1:
            letters = "".join(chr(97 + known.index(json.dumps(one))) for one in value)
            return {"@letters": letters, "for": [json.loads(one) for one in known]}
    return value


def decides(key: str, value: Any) -> bool:
    """Whether a key is worth keeping; a few of the others stay, to be passed over."""
    if key in KEPT:
        return True
    finite = not isinstance(value, float) or abs(value) < 1e300
    return (
        key not in TOWERS and key not in SAMPLING | HARMLESS and not TOKENS.search(key) and finite
    )


def named(pairs: list[tuple[str, str]]) -> list[list[Any]]:
    """Module names by pattern, with the numbers of their layers as ranges."""
    groups: dict[tuple[str, str], list[int]] = {}
    for name, value in pairs:
        if OTHER_EXPERT.search(name) or name.startswith(("visual", "model.visual.")):
            continue
        number = NUMBER.search(name)
        pattern = NUMBER.sub("{}", name, count=1)
        groups.setdefault((pattern, value), []).extend([int(number[0])] if number else [])
    return [[pattern, ranges(numbers), value] for (pattern, value), numbers in groups.items()]


def ranges(numbers: list[int]) -> str:
    """1,2,3,7 -> 1-3,7."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
