"""Predicts what others measured, and says how far off that is."""
