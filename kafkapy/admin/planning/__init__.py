"""Planners: where replicas are to be, and what a move costs."""
