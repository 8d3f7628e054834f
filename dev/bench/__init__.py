"""`scripts/bench`: compares kafkapy with Apache Kafka, and measures its cost as work grows."""
