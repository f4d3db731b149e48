"""Operator times measured by NVIDIA, from the package aiconfigurator-core."""

from capplan.importers.silicon.tables import ENGINES, gpus, silicon

__all__ = ["ENGINES", "gpus", "silicon"]
