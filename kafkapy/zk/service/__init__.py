"""A standalone ZooKeeper server as a pure core: bytes in, replies and notifications out."""
