"""Tools that work on znodes, and the ZooKeeper servers that kafkapy runs."""
