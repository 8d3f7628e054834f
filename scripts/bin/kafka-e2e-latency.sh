#!/bin/sh
# Kafka's kafka-e2e-latency.sh, answered by kafkapy.
kafkapy=kafkapy
command -v kafkapy >/dev/null || kafkapy=$(dirname "$0")/../../.venv/bin/kafkapy
exec "$kafkapy" e2e-latency "$@"
