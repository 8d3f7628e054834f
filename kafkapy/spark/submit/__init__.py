"""`kafkapy spark-submit`: the session, the job, and the transfer of secrets."""
