"""Time and memory to read a million requests in the format of Azure's trace of 2024.

Run: python benchmarks/traces.py [rows]
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from capplan.importers.traces.how import How
from capplan.importers.traces.ledger import Ledger
from capplan.importers.traces.read import read


def write(path: Path, rows: int) -> None:
    """A week of requests with seven digits of a second and a zone."""
    rng = np.random.default_rng(1)
    ticks = np.sort(rng.integers(0, 7 * 86_400 * 10**7, rows))
    begin = np.datetime64("2024-05-10T00:00:00", "ns")
    moments = np.datetime_as_string(begin + (ticks * 100).astype("timedelta64[ns]"), "ns")
    prompt, output = rng.lognormal(7, 1, rows).astype(int) + 1, rng.lognormal(5, 1, rows)
    with path.open("w") as file:
        file.write("TIMESTAMP,ContextTokens,GeneratedTokens\n")
        for moment, asked, answered in zip(moments, prompt, output.astype(int) + 1, strict=True):
            file.write(f"{moment[:10]} {moment[11:27]}+00:00,{asked},{answered}\n")


def main() -> None:
    """Writes a trace, reads it and prints what that took."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.csv"
        write(path, rows)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begin = time.perf_counter()
        reading = read([path], How(Ledger()))
        seconds = time.perf_counter() - begin
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert reading.requests is not None
    print(
        f"{len(reading.requests):,} requests in {seconds:.2f} s; "
        f"peak {after / 1024:.0f} MiB, {before / 1024:.0f} before reading"
    )


if __name__ == "__main__":
    main()
