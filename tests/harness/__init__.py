"""Shared parts of the tests and of dev."""
