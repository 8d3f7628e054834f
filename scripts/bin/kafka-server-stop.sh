#!/bin/sh
# Kafka's kafka-server-stop.sh, answered by kafkapy; it returns when the broker has ended.
exec "$(command -v kafkapy || echo "$(dirname "$0")/../../.venv/bin/kafkapy")" \
    server stop --signal "${SIGNAL:-TERM}" "$@"
