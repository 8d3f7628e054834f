"""One broker's logs, byte for byte as Kafka writes them.

May import `record`, `common`. Start with `unified_log`.
"""
