"""Formats of other programs, read into capplan's records."""
