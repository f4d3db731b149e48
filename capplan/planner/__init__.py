"""Pure functions from records to records: traffic to replicas, GPUs, racks, watts and dollars."""
