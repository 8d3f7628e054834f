"""Cluster administration by area, over `client`. Start with `topics`."""
