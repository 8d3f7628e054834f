#!/bin/sh
# Kafka's kafka-producer-perf-test.sh, answered by kafkapy.
exec "$(command -v kafkapy || echo "$(dirname "$0")/../../.venv/bin/kafkapy")" producer-perf "$@"
