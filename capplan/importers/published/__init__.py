"""Measurements that others published, as the records of this project keep them."""

from capplan.importers.published.points import read_points
from capplan.importers.published.reports import read_reports

__all__ = ["read_points", "read_reports"]
