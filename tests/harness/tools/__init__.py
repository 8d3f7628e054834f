"""Command lines for Kafka's tools and ours, and their output."""
