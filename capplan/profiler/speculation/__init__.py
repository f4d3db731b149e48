"""Speculative decoding with real checkpoints, to count the drafts that are kept."""
