#!/bin/sh
# Kafka's zookeeper-server-stop.sh, answered by kafkapy; it returns when the server has ended.
kafkapy=kafkapy
command -v kafkapy >/dev/null || kafkapy=$(dirname "$0")/../../.venv/bin/kafkapy
exec "$kafkapy" zookeeper stop "$@"
