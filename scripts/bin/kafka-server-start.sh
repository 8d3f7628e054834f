#!/bin/sh
# Kafka's kafka-server-start.sh, answered by kafkapy.
if [ $# -lt 1 ]; then
    echo "USAGE: $0 [-daemon] server.properties [--override property=value]*"
    exit 1
fi
kafkapy=kafkapy
command -v kafkapy >/dev/null || kafkapy=$(dirname "$0")/../../.venv/bin/kafkapy
exec "$kafkapy" server start "$@"
