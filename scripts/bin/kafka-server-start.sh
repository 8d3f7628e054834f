#!/bin/sh
# Kafka's kafka-server-start.sh, answered by kafkapy.
file=${1-}
[ "$file" != -daemon ] || file=${2-}
case $file in
    -h | --help | --version) ;;
    "" | -*)
        echo "USAGE: $0 [-daemon] server.properties [--override property=value]*"
        exit 1
        ;;
esac
kafkapy=kafkapy
command -v kafkapy >/dev/null || kafkapy=$(dirname "$0")/../../.venv/bin/kafkapy
exec "$kafkapy" server start "$@"
