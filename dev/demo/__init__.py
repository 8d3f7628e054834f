"""`scripts/demo`: from a log file to an answer, and a leader that dies on the way."""
