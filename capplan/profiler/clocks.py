"""The two clocks: events on a CUDA device, processor time on a CPU."""

import re
import time
from pathlib import Path
from typing import Final

import torch

from capplan.profiler.protocol import Step

CUDA_SWEEP_BYTES: Final = 256 << 20
"""More than any second-level cache."""
CPU_SWEEP_BYTES: Final = 64 << 20
"""Used where the system does not tell the size of its last-level cache."""


class CpuClock:
    """Processor time of the calling thread.

    The profiler computes on one thread, so this is the time that the step keeps a core busy. On a
    machine with other work it repeats where the clock on the wall does not.
    """

    def __init__(self) -> None:
        self._other = torch.zeros(_sweep_bytes(), dtype=torch.uint8)

    def prepare(self, step: Step) -> Step:
        """Returns the step unchanged."""
        return step

    def time(self, step: Step) -> float:
        """Runs the step once. [s]."""
        self._other.fill_(1)
        start = time.thread_time()
        step()
        return time.thread_time() - start


class CudaClock:
    """Events on the device, around a replay of the step's CUDA graph.

    A step that cannot be captured is launched kernel by kernel instead; `eager_steps` counts them.
    """

    def __init__(self) -> None:
        self.eager_steps = 0
        self._other = torch.zeros(CUDA_SWEEP_BYTES, dtype=torch.uint8, device="cuda")

    def prepare(self, step: Step) -> Step:
        """Captures the step as a graph; its buffers live as long as what is returned."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                step()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                step()
        except RuntimeError:
            torch.cuda.synchronize()
            self.eager_steps += 1
            return step
        replay: Step = graph.replay
        return replay

    def time(self, step: Step) -> float:
        """Runs the step once between two events. [s]."""
        start = torch.cuda.Event(enable_timing=True)
        end = torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        self._other.fill_(1)
        start.record()
        step()
        end.record()
        torch.cuda.synchronize()
        return float(start.elapsed_time(end)) / 1000


def _sweep_bytes() -> int:
    """Twice the last-level cache. [bytes]."""
    size = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")
    found = re.fullmatch(r"(\d+)K", size.read_text().strip()) if size.is_file() else None
    return 2 * int(found[1]) * 1024 if found else CPU_SWEEP_BYTES
