"""Kafka's data in ZooKeeper, above a port of eight verbs.

May import `common`. Start with `zookeeper`.
"""
