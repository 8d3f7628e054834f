#!/bin/sh
# Kafka's kafka-topics.sh, answered by kafkapy.
exec "$(command -v kafkapy || echo "$(dirname "$0")/../../.venv/bin/kafkapy")" topics "$@"
