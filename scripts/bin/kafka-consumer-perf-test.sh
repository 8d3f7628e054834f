#!/bin/sh
# Kafka's kafka-consumer-perf-test.sh, answered by kafkapy.
exec "$(command -v kafkapy || echo "$(dirname "$0")/../../.venv/bin/kafkapy")" consumer-perf "$@"
