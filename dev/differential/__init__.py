"""Random operations on one partition, on kafkapy and on Apache Kafka 3.9.1: the same outcomes."""
