#!/bin/sh
# Kafka's kafka-preferred-replica-election.sh, answered by kafkapy.
exec "$(command -v kafkapy || echo "$(dirname "$0")/../../.venv/bin/kafkapy")" preferred-replica-election "$@"
