"""Followers of ZooKeeper's change notifications."""
