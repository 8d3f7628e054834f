#!/bin/sh
# Kafka's kafka-configs.sh, answered by kafkapy.
exec "$(command -v kafkapy || echo "$(dirname "$0")/../../.venv/bin/kafkapy")" configs "$@"
