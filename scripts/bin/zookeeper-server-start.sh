#!/bin/sh
# Kafka's zookeeper-server-start.sh, answered by kafkapy.
if [ $# -lt 1 ]; then
    echo "USAGE: $0 [-daemon] zookeeper.properties"
    exit 1
fi
kafkapy=kafkapy
command -v kafkapy >/dev/null || kafkapy=$(dirname "$0")/../../.venv/bin/kafkapy
exec "$kafkapy" zookeeper start "$@"
