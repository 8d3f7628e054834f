"""Offsets of consumer groups: show, reset, export and import."""
