#!/bin/sh
# Kafka's kafka-replica-verification.sh, answered by kafkapy.
exec "$(command -v kafkapy || echo "$(dirname "$0")/../../.venv/bin/kafkapy")" replica-verification "$@"
