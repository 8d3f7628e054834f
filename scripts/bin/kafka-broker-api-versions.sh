#!/bin/sh
# Kafka's kafka-broker-api-versions.sh, answered by kafkapy.
exec "$(command -v kafkapy || echo "$(dirname "$0")/../../.venv/bin/kafkapy")" broker-api-versions "$@"
