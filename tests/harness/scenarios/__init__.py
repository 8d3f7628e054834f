"""Scenarios: the interpreter of `tests/scenarios/**/*.txt`, and the steps of each folder."""
