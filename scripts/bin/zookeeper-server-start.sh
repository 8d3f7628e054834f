#!/bin/sh
# Kafka's zookeeper-server-start.sh, answered by kafkapy.
file=${1-}
[ "$file" != -daemon ] || file=${2-}
case $file in
    -h | --help | --version) ;;
    "" | -*)
        echo "USAGE: $0 [-daemon] zookeeper.properties"
        exit 1
        ;;
esac
kafkapy=kafkapy
command -v kafkapy >/dev/null || kafkapy=$(dirname "$0")/../../.venv/bin/kafkapy
exec "$kafkapy" zookeeper start "$@"
