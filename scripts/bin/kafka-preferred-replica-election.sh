#!/bin/sh
# Kafka's kafka-preferred-replica-election.sh, answered by kafkapy.
kafkapy=kafkapy
command -v kafkapy >/dev/null || kafkapy=$(dirname "$0")/../../.venv/bin/kafkapy
exec "$kafkapy" preferred-replica-election "$@"
