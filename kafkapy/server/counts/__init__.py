"""Counts and times that metrics are made of."""
