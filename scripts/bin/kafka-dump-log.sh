#!/bin/sh
# Kafka's kafka-dump-log.sh, answered by kafkapy.
exec "$(command -v kafkapy || echo "$(dirname "$0")/../../.venv/bin/kafkapy")" dump-log-segments "$@"
