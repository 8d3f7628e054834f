"""`kafkapy spark-submit`: the session, the job, and how its secrets travel."""
