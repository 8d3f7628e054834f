"""Brokers and clusters on this machine: start, find, stop."""
