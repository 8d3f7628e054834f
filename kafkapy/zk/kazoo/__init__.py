"""ZooKeeper over kazoo: the only package that imports it."""
