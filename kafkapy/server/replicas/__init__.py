"""The replicas of this broker: served, fetched, followed, and moved between directories."""
