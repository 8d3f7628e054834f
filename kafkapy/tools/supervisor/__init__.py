"""The supervisor of several brokers on one machine."""
