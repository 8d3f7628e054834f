"""Python workers of a local Spark session, forked from one that is ready."""
