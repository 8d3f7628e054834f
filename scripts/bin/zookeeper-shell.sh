#!/bin/sh
# Kafka's zookeeper-shell.sh, answered by kafkapy.
exec "$(command -v kafkapy || echo "$(dirname "$0")/../../.venv/bin/kafkapy")" zookeeper-shell "$@"
