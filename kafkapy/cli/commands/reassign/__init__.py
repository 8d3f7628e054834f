"""`kafkapy reassign`: its options, and its actions in several modules."""
