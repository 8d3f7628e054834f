"""Brokers that exist only as bytes or as scripted answers."""
