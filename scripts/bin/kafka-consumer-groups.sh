#!/bin/sh
# Kafka's kafka-consumer-groups.sh, answered by kafkapy.
exec "$(command -v kafkapy || echo "$(dirname "$0")/../../.venv/bin/kafkapy")" consumer-groups "$@"
