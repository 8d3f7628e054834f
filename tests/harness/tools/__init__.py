"""Command lines for Kafka's tools and ours, and what they print."""
