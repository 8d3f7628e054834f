"""Tools that work on znodes, and a ZooKeeper of one's own."""
