#!/bin/sh
# Kafka's kafka-delete-records.sh, answered by kafkapy.
exec "$(command -v kafkapy || echo "$(dirname "$0")/../../.venv/bin/kafkapy")" delete-records "$@"
