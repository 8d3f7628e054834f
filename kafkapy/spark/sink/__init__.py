"""The Spark sink: rows as records, at least or exactly once."""
