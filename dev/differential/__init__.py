"""Random operations on kafkapy and on Apache Kafka 3.9.1, which must have the same outcomes."""
