"""Capacity planning for LLM serving fleets, with and without speculative decoding."""

__version__ = "0.1.0"
