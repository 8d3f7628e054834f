"""Kafka's data in ZooKeeper, over a port with eight operations.

May import `security` and `common`. Start with `zookeeper`.
"""
