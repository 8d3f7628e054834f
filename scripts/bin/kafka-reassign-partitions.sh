#!/bin/sh
# Kafka's kafka-reassign-partitions.sh, answered by kafkapy.
exec "$(command -v kafkapy || echo "$(dirname "$0")/../../.venv/bin/kafkapy")" reassign "$@"
