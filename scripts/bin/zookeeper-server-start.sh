#!/bin/sh
# Kafka's zookeeper-server-start.sh, answered by kafkapy.
if [ $# -lt 1 ]; then
    echo "USAGE: $0 [-daemon] zookeeper.properties"
    exit 1
fi
exec "$(command -v kafkapy || echo "$(dirname "$0")/../../.venv/bin/kafkapy")" zookeeper start "$@"
