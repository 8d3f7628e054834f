#!/bin/sh
# Kafka's kafka-log-dirs.sh, answered by kafkapy.
exec "$(command -v kafkapy || echo "$(dirname "$0")/../../.venv/bin/kafkapy")" log-dirs "$@"
