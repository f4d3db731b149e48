"""What docs/validation.md shows, each section by a module of its own."""
