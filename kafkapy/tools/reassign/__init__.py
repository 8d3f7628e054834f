"""Reassignment of partitions: executed, verified, throttled and cancelled."""
