"""Kafka's data in ZooKeeper, over a port with eight operations.

May import `common`. Start with `zookeeper`.
"""
