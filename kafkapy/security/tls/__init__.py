"""Key and trust stores in every format that Kafka reads."""
