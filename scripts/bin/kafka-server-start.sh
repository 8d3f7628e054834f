#!/bin/sh
# Kafka's kafka-server-start.sh, answered by kafkapy.
if [ $# -lt 1 ]; then
    echo "USAGE: $0 [-daemon] server.properties [--override property=value]*"
    exit 1
fi
exec "$(command -v kafkapy || echo "$(dirname "$0")/../../.venv/bin/kafkapy")" server start "$@"
