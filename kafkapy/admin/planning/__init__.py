"""Planners for the placement of replicas, and the cost of moves."""
