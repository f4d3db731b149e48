"""One command a file: read, call, show."""
