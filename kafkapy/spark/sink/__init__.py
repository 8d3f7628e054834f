"""The Spark sink: writes rows as records, at least or exactly once."""
