"""Counts and times for the metrics."""
