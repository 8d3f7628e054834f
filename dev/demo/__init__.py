"""`scripts/demo`: from a log file to an answer, and then a cluster whose leader is killed."""
