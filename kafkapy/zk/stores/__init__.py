"""Kafka's data in ZooKeeper: typed, written conditionally, fenced by the controller's epoch."""
