"""Measures step times on this machine; the only room that knows torch and NVML."""
