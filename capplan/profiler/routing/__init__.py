"""What the routers of a real checkpoint do with real text."""
