#!/bin/sh
# Kafka's kafka-e2e-latency.sh, answered by kafkapy.
exec "$(command -v kafkapy || echo "$(dirname "$0")/../../.venv/bin/kafkapy")" e2e-latency "$@"
