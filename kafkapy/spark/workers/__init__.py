"""Python workers of a local Spark session, forked from a preloaded process."""
