"""`scripts/chaos`: real clusters and clients under faults that a seed draws."""
