#!/bin/sh
# Kafka's kafka-server-stop.sh, answered by kafkapy; it returns when the broker has ended.
kafkapy=kafkapy
command -v kafkapy >/dev/null || kafkapy=$(dirname "$0")/../../.venv/bin/kafkapy
exec "$kafkapy" \
    server stop --signal "${SIGNAL:-TERM}" "$@"
