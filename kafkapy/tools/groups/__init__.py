"""Offsets of consumer groups: shown, reset, kept in files."""
