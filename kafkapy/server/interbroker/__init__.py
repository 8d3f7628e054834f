"""Connections to other brokers."""
