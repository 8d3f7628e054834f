"""Brokers, ZooKeeper, Apache Kafka and clients as real processes."""
