"""Listeners and connections: accepted, limited, encrypted, authenticated, read and written."""
