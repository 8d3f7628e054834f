#!/bin/sh
# Kafka's kafka-cluster.sh, answered by kafkapy.
exec "$(command -v kafkapy || echo "$(dirname "$0")/../../.venv/bin/kafkapy")" cluster "$@"
