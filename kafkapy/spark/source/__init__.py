"""The Spark source: reads batches, streams and segment files as rows."""
