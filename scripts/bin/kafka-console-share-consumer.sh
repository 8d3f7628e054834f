#!/bin/sh
# Kafka's kafka-console-share-consumer.sh, answered by kafkapy.
kafkapy=kafkapy
command -v kafkapy >/dev/null || kafkapy=$(dirname "$0")/../../.venv/bin/kafkapy
exec "$kafkapy" console-share-consumer "$@"
