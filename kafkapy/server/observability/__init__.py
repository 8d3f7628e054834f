"""Metrics and logs of the broker."""
