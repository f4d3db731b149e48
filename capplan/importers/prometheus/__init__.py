"""The history of a fleet as its Prometheus server has kept it."""
