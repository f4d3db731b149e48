"""GPUs that published rounds were run on: those with operator tables, and rates of the others.

Rates of GPUs without tables are what they are sold for. Those of the A800 and the H800 differ from
the A100's and the H100's in their links alone.
"""

from typing import Final

from capplan.physics.estimated_step import Rates

TABLES: Final = {
    "A100": "a100-sxm", "H100": "h100-sxm", "H200": "h200-sxm", "B200": "b200-sxm",
    "B300": "b300-sxm", "GB200": "gb200", "GB300": "gb300", "L40S": "l40s",
    "RTX PRO 6000": "rtx-pro-6000-server",
}  # fmt: skip
"""Names as sold to names as capplan writes hardware."""

NVLINK_S: Final = 8e-6
"""Of a small sum over GPUs with NVLink: 5 to 10 us (NVIDIA's tables, custom all-reduce)."""
PCIE_S: Final = 25e-6
"""The same over PCI Express: 20 to 50 us through NCCL."""
_AMPERE: Final = (2.039e12, 312e12)
_HOPPER: Final = (3.35e12, 989e12)

RATES: Final = {
    "A100": Rates(*_AMPERE, 300e9, NVLINK_S),
    "A100-40": Rates(1.555e12, 312e12, 300e9, NVLINK_S),
    "A800": Rates(*_AMPERE, 200e9, NVLINK_S),
    "H100": Rates(*_HOPPER, 450e9, NVLINK_S),
    "H800": Rates(*_HOPPER, 200e9, NVLINK_S),
    "H20": Rates(4.0e12, 148e12, 450e9, NVLINK_S),
    "H200": Rates(4.8e12, 989e12, 450e9, NVLINK_S),
    "B200": Rates(7.7e12, 2250e12, 900e9, NVLINK_S),
    "B300": Rates(7.75e12, 2250e12, 900e9, NVLINK_S),
    "L40": Rates(864e9, 181e12, 25e9, PCIE_S),
    "L40S": Rates(864e9, 362e12, 25e9, PCIE_S),
    "RTX PRO 6000": Rates(1.792e12, 468e12, 50e9, PCIE_S),
    "RTX 5090": Rates(1.792e12, 210e12, 50e9, PCIE_S),
}
"""NVIDIA's data sheets; links of GPUs without NVLink are PCI Express 4.0 or 5.0 of 16 lanes."""
