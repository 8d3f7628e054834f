"""The Spark source: batches, streams and segment files as rows."""
