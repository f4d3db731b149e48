"""Rows of served benchmarks as NVIDIA's AIConfigurator keeps them: a CSV, one run a row."""

import csv
from pathlib import Path
from typing import Final

from capplan.errors import Complaint, InputError
from capplan.records.served import ServedRow

ENGINES: Final = ("sglang", "trtllm", "vllm")
NEEDED: Final = (
    "id", "backend", "model_path", "system", "isl", "osl", "batch_size", "tp_size",
    "silicon_tpot_ms",
)  # fmt: skip
MODE: Final = "agg"


def read_serving(path: Path) -> tuple[ServedRow, ...]:
    """Rows of a file; those whose prefill runs on GPUs of its own are another experiment.

    Args:
        path: The CSV, with a header.

    Raises:
        InputError: It cannot be read, lacks columns, or has rows that are not as the format says;
            all by line.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            table = csv.DictReader(file, strict=True)
            missing = [name for name in NEEDED if name not in (table.fieldnames or ())]
            if missing:
                rule = f"needs the columns {', '.join(missing)}"
                raise InputError([Complaint(f"{path}:1", "", rule)])
            cells = [(f"{path}:{table.line_num}", row) for row in table]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError([Complaint(str(path), "", f"cannot be read: {error}")]) from error
    complaints: list[Complaint] = []
    rows = [_row(_Cells(row, place, complaints)) for place, row in cells
            if (row.get("mode") or MODE) == MODE]  # fmt: skip
    if complaints:
        raise InputError(complaints)
    return tuple(rows)


class _Cells:
    """One row's cells, each checked; what is wrong is gathered, not raised."""

    def __init__(
        self, cells: dict[str | None, str | None], place: str, complaints: list[Complaint]
    ) -> None:
        self.place, self._cells, self._complaints = place, cells, complaints
        if None in cells or None in cells.values():
            self._wrong("", "must have as many cells as the header", None)

    def text(self, name: str) -> str | None:
        return (self._cells.get(name) or "").strip() or None

    def needed(self, name: str) -> str:
        found = self.text(name)
        if found is None:
            self._wrong(name, "must be given", None)
        return found or ""

    def count(self, name: str) -> int | None:
        """A whole number; None where it is blank, or nought, which says as little."""
        found = self.text(name)
        if found is None:
            return None
        if not found.isdecimal():
            self._wrong(name, "must be a whole number", found)
            return None
        return int(found) or None

    def at_least_one(self, name: str) -> int:
        found = self.count(name)
        if found is None:
            self._wrong(name, "must be a whole number above nought", self.text(name))
        return found or 1

    def seconds(self, name: str) -> float:
        found = self.text(name)
        try:
            value = float(found or "nan")
        except ValueError:
            value = float("nan")
        if not 0 < value < float("inf"):
            self._wrong(name, "must be a time above nought", found)
        return value * 1e-3

    def engine(self) -> str:
        found = self.needed("backend")
        if found and found not in ENGINES:
            self._wrong("backend", f"must be one of {', '.join(ENGINES)}", found)
        return found

    def _wrong(self, name: str, rule: str, found: str | None) -> None:
        self._complaints.append(Complaint(self.place, name, rule, found))


def _row(cells: _Cells) -> ServedRow:
    return ServedRow(
        name=cells.needed("id"),
        place=cells.place,
        engine=cells.engine(),
        engine_version=cells.text("backend_version"),
        checkpoint=cells.needed("model_path"),
        gpu=cells.needed("system").replace("_", "-"),
        precision=cells.text("precision"),
        matrices=cells.text("gemm_quant_mode"),
        experts=cells.text("moe_quant_mode"),
        input_tokens=cells.at_least_one("isl"),
        output_tokens=cells.at_least_one("osl"),
        batch_size=cells.at_least_one("batch_size"),
        tensor=cells.at_least_one("tp_size"),
        pipeline=cells.count("pp_size") or 1,
        attention_copies=cells.count("attention_dp_size"),
        expert_slices=cells.count("moe_tp_size"),
        expert_groups=cells.count("moe_ep_size"),
        tpot_s=cells.seconds("silicon_tpot_ms"),
    )
