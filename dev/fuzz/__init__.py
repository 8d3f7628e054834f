"""`scripts/fuzz`: hostile but well-formed requests over every API."""
