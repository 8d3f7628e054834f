#!/bin/sh
# Kafka's kafka-verifiable-consumer.sh, answered by kafkapy.
exec "$(command -v kafkapy || echo "$(dirname "$0")/../../.venv/bin/kafkapy")" verifiable-consumer "$@"
