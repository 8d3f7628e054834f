#!/bin/sh
# Kafka's kafka-run-class.sh for the classes that runbooks name: the same tool of kafkapy.
if [ $# -eq 0 ]; then
  echo "USAGE: $0 [-daemon] [-name servicename] [-loggc] classname [opts]"
  exit 1
fi
class=$1
shift
case $class in
  kafka.tools.StateChangeLogMerger) command=state-change-log-merger ;;
  kafka.tools.DumpLogSegments) command=dump-log-segments ;;
  *.ReplicaVerificationTool) command=replica-verification ;;
  *.GetOffsetShell) command=get-offsets ;;
  *.TopicCommand) command=topics ;;
  *.ConfigCommand) command=configs ;;
  *.ConsoleProducer) command=console-producer ;;
  *.ConsoleConsumer) command=console-consumer ;;
  *.BrokerApiVersionsCommand) command=broker-api-versions ;;
  *.ReassignPartitionsCommand) command=reassign ;;
  *.PreferredReplicaLeaderElectionCommand) command=preferred-replica-election ;;
  *.LeaderElectionCommand) command=leader-election ;;
  *.LogDirsCommand) command=log-dirs ;;
  *.DeleteRecordsCommand) command=delete-records ;;
  *.ConsumerGroupCommand) command=consumer-groups ;;
  *.TransactionsCommand) command=transactions ;;
  *.AclCommand) command=acls ;;
  *.ClusterTool) command=cluster ;;
  *.ProducerPerformance) command=producer-perf ;;
  *.ConsumerPerformance) command=consumer-perf ;;
  *.VerifiableProducer) command=verifiable-producer ;;
  *.VerifiableConsumer) command=verifiable-consumer ;;
  *.EndToEndLatency) command=e2e-latency ;;
  org.apache.zookeeper.ZooKeeperMain*) command=zookeeper-shell ;;
  *)
    echo "kafkapy has no tool for the class $class" >&2
    exit 1
    ;;
esac
exec "$(command -v kafkapy || echo "$(dirname "$0")/../../.venv/bin/kafkapy")" "$command" "$@"
