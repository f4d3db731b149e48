"""Reads and writes capplan's own formats; the only room, beside importers, that opens files."""
