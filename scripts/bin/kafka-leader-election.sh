#!/bin/sh
# Kafka's kafka-leader-election.sh, answered by kafkapy.
exec "$(command -v kafkapy || echo "$(dirname "$0")/../../.venv/bin/kafkapy")" leader-election "$@"
