"""`kafkapy reassign`, an action a module."""
