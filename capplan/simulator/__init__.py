"""Engines under load, step by step: what batch forms and how long requests take."""
