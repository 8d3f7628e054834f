"""`scripts/conformance`: real clients, Apache Kafka's tools and logs, Spark's connector."""
