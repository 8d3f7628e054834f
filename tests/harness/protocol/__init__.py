"""Examples and strategies of wire messages."""
