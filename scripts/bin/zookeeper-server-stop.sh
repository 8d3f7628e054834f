#!/bin/sh
# Kafka's zookeeper-server-stop.sh, answered by kafkapy; it returns when the server has ended.
exec "$(command -v kafkapy || echo "$(dirname "$0")/../../.venv/bin/kafkapy")" zookeeper stop "$@"
