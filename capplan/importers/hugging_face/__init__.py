"""Reads the configuration files of Hugging Face checkpoints."""
