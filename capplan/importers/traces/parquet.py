"""Blocks of rows of a Parquet file; needs pyarrow, which the extra `traces` brings."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from capplan.errors import Complaint, InputError
from capplan.importers.traces.comma import ROWS, Block

MAGIC = b"PAR1"


def names(path: Path) -> list[str]:
    """The file's columns.

    Raises:
        InputError: pyarrow is missing, or the file is damaged.
    """
    return list(_file(path).schema_arrow.names)


def blocks(path: Path, wanted: Sequence[str]) -> Iterator[Block]:
    """Rows, some thousand at a time; a place in complaints counts rows from 1.

    Times come as ISO text, which says whether they have a zone.

    Raises:
        InputError: As `names`.
    """
    seen = 0
    for batch in _file(path).iter_batches(batch_size=ROWS, columns=list(wanted)):
        columns: dict[str, Sequence[Any]] = {name: _values(batch.column(name)) for name in wanted}
        yield list(range(seen + 1, seen + 1 + batch.num_rows)), columns
        seen += batch.num_rows


def _values(column: Any) -> list[Any]:
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        zone = "UTC" if column.type.tz else None
        column = column.cast(pa.timestamp("ns", zone)).cast(pa.string())
    return list(column.to_pylist())


def _file(path: Path) -> Any:
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        rule, remedy = "Parquet needs pyarrow", "pip install 'capplan[traces]', or export CSV"
        raise InputError([Complaint(str(path), "", rule, remedy=remedy)]) from error
    try:
        return pq.ParquetFile(path)
    except (OSError, ValueError) as error:
        raise InputError([Complaint(str(path), "", "is no whole Parquet file")]) from error
