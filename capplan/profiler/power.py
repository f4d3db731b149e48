"""Electric power of the device, where it has a meter."""

import time
from typing import Any, Final, Protocol

from capplan.profiler.protocol import Step

WINDOW_S: Final = 1.0
"""Shortest window over which energy is read: counters step a few dozen times a second."""


class Meter(Protocol):
    """Reads the device's power."""

    def mean_w(self, step: Step) -> float | None:
        """Mean power while a step is repeated; None without a meter. [W]."""
        ...

    def idle_w(self) -> float | None:
        """Mean power while the device holds the model and does nothing. [W]."""
        ...


class NoMeter:
    """Stands where nothing can be read."""

    def mean_w(self, step: Step) -> float | None:
        """Nothing is known."""
        del step
        return None

    def idle_w(self) -> float | None:
        """Nothing is known."""
        return None


class EnergyCounter:
    """The total-energy counter of an NVIDIA GPU (Volta and later)."""

    def __init__(self, nvml: Any, handle: Any, synchronise: Step) -> None:
        self._nvml = nvml
        self._handle = handle
        self._synchronise = synchronise

    def mean_w(self, step: Step) -> float:
        """Repeats the step for a window. [W]."""
        return self._over_window(step)

    def idle_w(self) -> float:
        """Waits for a window. [W]."""
        return self._over_window(lambda: time.sleep(WINDOW_S))

    def _over_window(self, step: Step) -> float:
        self._synchronise()
        begin_s, begin_mj = time.monotonic(), self._energy_mj()
        while time.monotonic() < begin_s + WINDOW_S:
            step()
            self._synchronise()
        return (self._energy_mj() - begin_mj) / 1000 / (time.monotonic() - begin_s)

    def _energy_mj(self) -> float:
        return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle))
