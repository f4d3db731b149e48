"""Reads operator tables, each when it is first asked for."""

import re
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from capplan.errors import Complaint, InputError
from capplan.importers.silicon.package import LICENCE, PACKAGE, described, systems, version
from capplan.physics.operators import TIME, Limits, Silicon, Table
from capplan.records.caveat import Source

ENGINES: Final = ("sglang", "trtllm", "vllm")


@cache
def silicon(gpu: str, engine: str) -> Silicon:
    """The tables of a GPU under an engine; files are read when the composition asks for them.

    Args:
        gpu: As capplan writes hardware, `h200-sxm`.
        engine: `vllm`, `sglang` or `trtllm`.

    Raises:
        InputError: The package is missing, or has no tables of the GPU or the engine.
    """
    known = gpus()
    complaints = []
    if gpu not in known:
        rule = f"must be a GPU with operator tables: {', '.join(known)}"
        complaints.append(Complaint("silicon", "gpu", rule, gpu))
    if engine not in ENGINES:
        rule = f"must be an engine with operator tables: {', '.join(ENGINES)}"
        complaints.append(Complaint("silicon", "engine", rule, engine))
    if complaints:
        raise InputError(complaints)
    system = _system(gpu)
    return Silicon(
        gpu=gpu,
        engine=engine,
        limits=_limits(system),
        engines=ENGINES,
        read=lambda library, operator: _tables(system, library, operator),
    )


@cache
def gpus() -> tuple[str, ...]:
    """GPUs of which the package has tables of matrix products.

    Raises:
        InputError: The package is missing.
    """
    found = (path.parent.name for path in (systems() / "data").glob("*/gemm"))
    return tuple(sorted(name.replace("_", "-") for name in found))


def _system(gpu: str) -> str:
    return gpu.replace("-", "_")


def _limits(system: str) -> Limits:
    said = described(system)
    return Limits(
        bandwidth_bytes_per_s=float(said["gpu"]["mem_bw"]),
        bf16_flop_per_s=float(said["gpu"]["bfloat16_tc_flops"]),
        memory_bytes=float(said["gpu"]["mem_capacity"]),
        gpus_per_node=int(said["node"]["num_gpus_per_node"]),
        source=Source(
            what="labels of the GPU",
            where=f"{PACKAGE} {version()}, systems/{system}.yaml",
            licence=LICENCE,
        ),
    )


@cache
def _tables(system: str, library: str, operator: str) -> tuple[Table, ...]:
    """One operator's tables by all versions of a library, the newest first."""
    folder = systems() / "data" / system
    found = folder.glob(f"*/{library}/*/{operator}_perf.parquet")
    newest = sorted(found, key=lambda path: _order(path.parent.name), reverse=True)
    return tuple(_table(path) for path in newest)


def _order(name: str) -> tuple[tuple[int, ...], str]:
    """Sorts versions: 1.3.0rc9 before 1.3.0rc20."""
    return tuple(int(digits) for digits in re.findall(r"\d+", name)), name


def _table(path: Path) -> Table:
    """One file. `latency` is in milliseconds but for exchanges by DeepEP, which nobody asks for."""
    import pyarrow.parquet

    read = pyarrow.parquet.read_table(path)
    columns = {name: _column(read[name]) for name in read.column_names}
    columns[TIME] = np.asarray(columns.pop("latency"), dtype=float) * 1e-3
    inside = path.relative_to(systems())
    source = Source(
        what="operator times measured by NVIDIA",
        where=f"{PACKAGE} {version()}, systems/{inside}",
        licence=LICENCE,
    )
    return Table(columns, path.parent.name, source)


def _column(column: Any) -> NDArray[Any]:
    return np.asarray(column.combine_chunks().to_numpy(zero_copy_only=False))
