"""ZooKeeper over kazoo: the only package of the broker that imports it."""
