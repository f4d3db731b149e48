"""Predictions of what others measured, and their errors."""
