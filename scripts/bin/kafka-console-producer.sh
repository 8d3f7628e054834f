#!/bin/sh
# Kafka's kafka-console-producer.sh, answered by kafkapy.
exec "$(command -v kafkapy || echo "$(dirname "$0")/../../.venv/bin/kafkapy")" console-producer "$@"
