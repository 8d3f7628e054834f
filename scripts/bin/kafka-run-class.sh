#!/bin/sh
# Kafka's kafka-run-class.sh for the classes that runbooks name: the same tool of kafkapy.
daemon= name=kafkapy
while :; do
  case ${1-} in
    -daemon) daemon=1 ;;
    -name) name=${2-}; shift ;;
    -loggc) ;; # a JVM's log of its garbage collector
    *) break ;;
  esac
  shift
done
if [ $# -eq 0 ]; then
  echo "USAGE: $0 [-daemon] [-name servicename] [-loggc] classname [opts]"
  exit 1
fi
class=$1
shift
case $class in
  kafka.Kafka) command=server ;;
  org.apache.zookeeper.server.quorum.QuorumPeerMain) command=zookeeper ;;
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
  *.ShareGroupCommand) command=share-groups ;;
  *.GroupsCommand) command=groups ;;
  *.ConsoleShareConsumer) command=console-share-consumer ;;
  *.VerifiableShareConsumer) command=verifiable-share-consumer ;;
  *.ClientMetricsCommand) command=client-metrics ;;
  *.DelegationTokenCommand) command=delegation-tokens ;;
  *.TransactionsCommand) command=transactions ;;
  *.FeatureCommand) command=features ;;
  *.AclCommand) command=acls ;;
  *.ClusterTool) command=cluster ;;
  *.ProducerPerformance) command=producer-perf ;;
  *.ConsumerPerformance) command=consumer-perf ;;
  *.VerifiableProducer) command=verifiable-producer ;;
  *.VerifiableConsumer) command=verifiable-consumer ;;
  *.EndToEndLatency) command=e2e-latency ;;
  org.apache.zookeeper.ZooKeeperMain*)
    command=zookeeper-shell
    [ "${1-}" != -server ] || shift
    ;;
  *)
    echo "kafkapy has no tool for the class $class" >&2
    exit 1
    ;;
esac
kafkapy=kafkapy
command -v kafkapy >/dev/null || kafkapy=$(dirname "$0")/../../.venv/bin/kafkapy
case $command/${1-} in
  server/ | server/--override*)
    echo "USAGE: java [options] kafka.Kafka server.properties [--override property=value]*"
    exit 1
    ;;
  server/* | zookeeper/*) exec "$kafkapy" "$command" start ${daemon:+--daemon} "$@" ;;
esac
if [ -n "$daemon" ]; then
  mkdir -p "${LOG_DIR:=logs}"
  nohup "$kafkapy" "$command" "$@" >"$LOG_DIR/$name.out" 2>&1 </dev/null &
  exit
fi
exec "$kafkapy" "$command" "$@"
