"""The names of Apache Kafka's scripts in `scripts/bin`, and the words of `kafkapy` for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DROP_IN: Final[Mapping[str, tuple[str, ...]]] = {
    "kafka-acls.sh": ("acls",),
    "kafka-broker-api-versions.sh": ("broker-api-versions",),
    "kafka-client-metrics.sh": ("client-metrics",),
    "kafka-cluster.sh": ("cluster",),
    "kafka-configs.sh": ("configs",),
    "kafka-console-consumer.sh": ("console-consumer",),
    "kafka-console-producer.sh": ("console-producer",),
    "kafka-console-share-consumer.sh": ("console-share-consumer",),
    "kafka-consumer-groups.sh": ("consumer-groups",),
    "kafka-consumer-perf-test.sh": ("consumer-perf",),
    "kafka-delegation-tokens.sh": ("delegation-tokens",),
    "kafka-delete-records.sh": ("delete-records",),
    "kafka-dump-log.sh": ("dump-log-segments",),
    "kafka-e2e-latency.sh": ("e2e-latency",),
    "kafka-features.sh": ("features",),
    "kafka-get-offsets.sh": ("get-offsets",),
    "kafka-groups.sh": ("groups",),
    "kafka-leader-election.sh": ("leader-election",),
    "kafka-log-dirs.sh": ("log-dirs",),
    "kafka-preferred-replica-election.sh": ("preferred-replica-election",),
    "kafka-producer-perf-test.sh": ("producer-perf",),
    "kafka-reassign-partitions.sh": ("reassign",),
    "kafka-replica-verification.sh": ("replica-verification",),
    "kafka-server-start.sh": ("server", "start"),
    "kafka-server-stop.sh": ("server", "stop"),
    "kafka-share-groups.sh": ("share-groups",),
    "kafka-topics.sh": ("topics",),
    "kafka-transactions.sh": ("transactions",),
    "kafka-verifiable-consumer.sh": ("verifiable-consumer",),
    "kafka-verifiable-producer.sh": ("verifiable-producer",),
    "kafka-verifiable-share-consumer.sh": ("verifiable-share-consumer",),
    "zookeeper-server-start.sh": ("zookeeper", "start"),
    "zookeeper-server-stop.sh": ("zookeeper", "stop"),
    "zookeeper-shell.sh": ("zookeeper-shell",),
}
