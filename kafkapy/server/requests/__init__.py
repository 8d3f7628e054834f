"""Handling of requests: outcomes, background tasks, and the slices of large requests."""
