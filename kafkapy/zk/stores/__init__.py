"""Kafka's data in ZooKeeper: typed, written on conditions, fenced by the controller's epoch."""
