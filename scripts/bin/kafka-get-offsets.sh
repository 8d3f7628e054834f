#!/bin/sh
# Kafka's kafka-get-offsets.sh, answered by kafkapy.
kafkapy=kafkapy
command -v kafkapy >/dev/null || kafkapy=$(dirname "$0")/../../.venv/bin/kafkapy
exec "$kafkapy" get-offsets "$@"
