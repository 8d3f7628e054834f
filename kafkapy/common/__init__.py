"""Kafka's shared words: ids, error codes, configs and the two ports; imports nothing."""
