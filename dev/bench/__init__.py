"""`scripts/bench`: kafkapy beside Apache Kafka, and beside itself as work grows."""
