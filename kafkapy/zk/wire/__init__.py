"""ZooKeeper's client protocol, sans-I/O: frames, requests and replies."""
