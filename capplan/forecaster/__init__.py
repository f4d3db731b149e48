"""History to forecast: pure functions from what was seen to what is to be planned for."""
