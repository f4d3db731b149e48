"""The device that is measured: what it is called, what it can hold, its clock and its meter."""

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import torch

from capplan.errors import MeasureError
from capplan.profiler.clocks import CpuClock, CudaClock
from capplan.profiler.power import EnergyCounter, Meter, NoMeter
from capplan.profiler.protocol import Clock

DeviceKind = Literal["cuda", "cpu"]
Precision = Literal["fp32", "bf16"]

DTYPES: Final[dict[Precision, torch.dtype]] = {"fp32": torch.float32, "bf16": torch.bfloat16}

GPU_NAMES: Final = {
    "NVIDIA A100-SXM4-80GB": "a100-sxm-80gb",
    "NVIDIA B200": "b200-sxm",
    "NVIDIA H100 80GB HBM3": "h100-sxm",
    "NVIDIA H200": "h200-sxm",
    "NVIDIA L40S": "l40s",
}
"""Names that fleets use, by the driver's; other devices are called after the driver's name."""


@dataclass(frozen=True)
class Device:
    """One device, as far as a profile mentions it."""

    kind: DeviceKind
    name: str
    """As a fleet would call it."""
    machine: str
    versions: dict[str, str]
    free_bytes: int
    clock: Clock
    meter: Meter
    bandwidth_bytes_per_s: float | None = None
    """Of its memory, by the driver's clock and bus width; None where it does not say."""


def choose(wanted: DeviceKind | None) -> Device:
    """Makes the device ready: on a CPU torch is held to one thread.

    Args:
        wanted: Which device; None for a CUDA device where there is one.

    Raises:
        MeasureError: If a CUDA device is wanted and torch sees none.
    """
    if wanted == "cpu" or not torch.cuda.is_available():
        if wanted == "cuda":
            raise MeasureError("torch sees no CUDA device\n    Use --device cpu.")
        return _cpu()
    return _gpu()


def slug(name: str) -> str:
    """Lower case, with hyphens for all but letters and digits."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _cpu() -> Device:
    torch.set_num_threads(1)
    model = _cpu_model()
    return Device(
        kind="cpu",
        name=f"cpu-{slug(model)}",
        machine=f"{model}, one thread, {platform.system()} {platform.release()}",
        versions={"torch": torch.__version__, "python": platform.python_version()},
        free_bytes=_free_memory_bytes(),
        clock=CpuClock(),
        meter=NoMeter(),
    )


def _gpu() -> Device:
    name = torch.cuda.get_device_name()
    meter, driver = _nvml()
    versions = {"torch": torch.__version__, "cuda": str(torch.version.cuda)}
    return Device(
        kind="cuda",
        name=GPU_NAMES.get(name, slug(name)),
        machine=f"{name}, {platform.system()} {platform.release()}",
        versions=versions | ({"driver": driver} if driver else {}),
        free_bytes=torch.cuda.mem_get_info()[0],
        clock=CudaClock(),
        meter=meter,
        bandwidth_bytes_per_s=_bandwidth(),
    )


def _bandwidth() -> float | None:
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    clock_khz = getattr(properties, "memory_clock_rate", None)
    width_bits = getattr(properties, "memory_bus_width", None)
    # Two transfers a clock.
    return 2 * clock_khz * 1e3 * width_bits / 8 if clock_khz and width_bits else None


def _nvml() -> tuple[Meter, str | None]:
    """The meter of torch's current device and the driver's version, where NVML is there."""
    try:
        import pynvml
    except ImportError:
        return NoMeter(), None
    try:
        pynvml.nvmlInit()
        handle = _handle(pynvml)
        pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
        driver = str(pynvml.nvmlSystemGetDriverVersion())
    except pynvml.NVMLError:
        return NoMeter(), None
    return EnergyCounter(pynvml, handle, torch.cuda.synchronize), driver


def _handle(nvml: Any) -> Any:
    """By the device's own number: CUDA_VISIBLE_DEVICES renumbers them for torch, not for NVML."""
    uuid = torch.cuda.get_device_properties(torch.cuda.current_device()).uuid
    return nvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    if info.is_file():
        found = re.search(r"^model name\s*:\s*(.+)$", info.read_text(), re.MULTILINE)
        if found:
            return found[1].strip()
    return platform.processor() or platform.machine()


def _free_memory_bytes() -> int:
    """Memory that can be had without swapping; half of all where the system does not say."""
    info = Path("/proc/meminfo")
    if info.is_file():
        found = re.search(r"^MemAvailable:\s*(\d+) kB$", info.read_text(), re.MULTILINE)
        if found:
            return int(found[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
