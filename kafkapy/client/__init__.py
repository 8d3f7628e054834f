"""A blocking Kafka client for CLI, admin, tools and Spark: plain sockets, one request at a time.

May import `protocol`, `record`, `security`, `common`. Start with `cluster` (brokers and requests),
then `channel` (one connection) and `fetch` (the raw batches of a range of offsets).
"""
