"""Random operations on consumer groups, on kafkapy and on Apache Kafka."""
