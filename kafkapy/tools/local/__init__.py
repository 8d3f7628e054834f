"""Brokers and clusters on this machine: started, found, stopped."""
