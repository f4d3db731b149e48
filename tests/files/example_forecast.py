"""A good forecast that tests spoil, and how they do it."""

from collections.abc import Callable
from pathlib import Path

Change = Callable[[str, str], Path]
Collect = Callable[..., list[str]]

FORECAST = """\
version: 1
name: chat
model: kimi-k2.5
time: {start: 2026-03-01T00:00:00Z, step: 1h}
rate:
  series: {file: rps.csv, column: mean_rps}
classes:
  - name: chat
    share: 0.75
    input_tokens: {mean_tokens: 800, cv: 1.2, max_tokens: 32768}
    output_tokens: {mean_tokens: 300, cv: 1, max_tokens: 8192}
    objectives: {ttft_p99: 2s, tpot_p99: 40ms}
  - name: agents
    share: 0.25
    input_tokens: {mean_tokens: 9000, cv: 0.5, max_tokens: 131072}
    output_tokens: {quantiles: {p50: 400, p99: 3000}, max_tokens: 8192}
    objectives: {ttft_p99_s: 5, chunk_gap_p95: 90 ms}
"""
SERIES = "time,mean_rps\n0,1.5\n1,3\n2,2e1\n\n"
