#!/bin/sh
# Kafka's kafka-console-consumer.sh, answered by kafkapy.
exec "$(command -v kafkapy || echo "$(dirname "$0")/../../.venv/bin/kafkapy")" console-consumer "$@"
