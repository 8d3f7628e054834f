# What runbooks have carried since Kafka 0.8, and what they say today. The names are Kafka's scripts,
# found on the PATH. Given: Z (ZooKeeper), B (brokers), D (a directory to write in), A and C (two
# brokers' state-change.log), F (a segment).
set -eu

kafka-topics.sh --create --zookeeper "$Z" --replication-factor 3 --partitions 8 --topic topic1
kafka-topics.sh --describe --topic topic1 --zookeeper "$Z"
kafka-topics.sh --alter --topic topic1 --config retention.ms=86400000 --zookeeper "$Z"
kafka-preferred-replica-election.sh --zookeeper "$Z"

echo '{"topics": [{"topic": "topic1"}], "version": 1}' >"$D/topics-to-move.json"
kafka-reassign-partitions.sh --zookeeper "$Z" --topics-to-move-json-file "$D/topics-to-move.json" \
    --broker-list "4,5,6,7" --generate >"$D/generated"
tail -n 1 "$D/generated" >"$D/reassign.json"
kafka-reassign-partitions.sh --zookeeper "$Z" --reassignment-json-file "$D/reassign.json" --execute
while kafka-reassign-partitions.sh --zookeeper "$Z" --reassignment-json-file "$D/reassign.json" \
    --verify | grep 'in progress'; do :; done
kafka-reassign-partitions.sh --zookeeper "$Z" --reassignment-json-file "$D/reassign.json" --verify

echo 'a line' | kafka-console-producer.sh --broker-list "$B" --topic topic1
kafka-run-class.sh kafka.tools.GetOffsetShell --broker-list "$B" --topic topic1 --time -1
kafka-run-class.sh kafka.tools.StateChangeLogMerger --logs "$A,$C" --topic topic1 --partitions 0,1 \
    >"$D/merged"
kafka-run-class.sh kafka.tools.DumpLogSegments --files "$F" --print-data-log >"$D/dumped"
timeout -s INT 4 kafka-replica-verification.sh --broker-list "$B" --topic-white-list 'topic.*' \
    --report-interval-ms 500 >"$D/verified" || true

kafka-leader-election.sh --bootstrap-server "$B" --election-type preferred --topic topic1 --partition 1
kafka-console-consumer.sh --bootstrap-server "$B" --topic topic1 --group group1 --from-beginning \
    --max-messages 1
kafka-consumer-groups.sh --bootstrap-server "$B" --describe --group group1
kafka-topics.sh --bootstrap-server "$B" --describe
