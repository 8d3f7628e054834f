#!/bin/sh
# Kafka's kafka-get-offsets.sh, answered by kafkapy.
exec "$(command -v kafkapy || echo "$(dirname "$0")/../../.venv/bin/kafkapy")" get-offsets "$@"
