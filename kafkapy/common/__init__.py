"""Shared types: ids, error codes, configs and ports. Imports no other package."""
