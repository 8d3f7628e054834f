"""A scripted cluster that `topics --describe` can describe."""

from __future__ import annotations

from typing import Any

from kafkapy.common.config_def import ConfigSource
from kafkapy.common.uuid import Uuid
from kafkapy.protocol.api_keys import API_VERSIONS, ApiKey
from kafkapy.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kafkapy.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata

TOPIC_ID = Uuid(bytes(range(16)))
DYNAMIC = ConfigSource.DYNAMIC_TOPIC_CONFIG
DEFAULT = ConfigSource.DEFAULT_CONFIG

# One partition of each kind; brokers 1 and 2 live, broker 3 does not.
TOPICS = {
    "t": {
        0: (1, [1, 2], [1, 2]),
        1: (2, [2, 1], [2]),
        2: (-1, [1], []),
        3: (3, [3, 1], [1, 3]),
        4: (1, [1, 2, 3], [1, 2]),
    },
    "plain": {0: (1, [1, 2], [1, 2])},
}
BROKERS = {1: 9001, 2: 9002}
CONFIGS = {"t": {"min.insync.replicas": "2", "retention.ms": "5"}}


def config_entry(
    name: str, value: str | None, source: int, *, sensitive: bool = False
) -> DescribeConfigsResourceResult:
    """One config entry, which is its own synonym."""
    return DescribeConfigsResourceResult(
        name=name,
        value=value,
        config_source=source,
        is_sensitive=sensitive,
        synonyms=[DescribeConfigsSynonym(name=name, value=value, source=source)],
    )


def describe_configs(request: Any, port: int) -> DescribeConfigsResponse:
    """The configs of CONFIGS, and one default for each resource."""
    results = []
    for resource in request.resources:
        entries = [config_entry("segment.bytes", "1073741824", DEFAULT)]
        for name, value in CONFIGS.get(resource.resource_name, {}).items():
            entries.append(config_entry(name, value, DYNAMIC))
        results.append(
            DescribeConfigsResult(
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                configs=entries,
            )
        )
    return DescribeConfigsResponse(results=results)


REASSIGNMENTS = ListPartitionReassignmentsResponse(
    topics=[
        OngoingTopicReassignment(
            name="t",
            partitions=[
                OngoingPartitionReassignment(
                    partition_index=4,
                    replicas=[1, 2, 3],
                    adding_replicas=[3],
                    removing_replicas=[2],
                )
            ],
        )
    ]
)


def describing_cluster(**script: Any) -> ScriptedCluster:
    """A new cluster; `script` replaces answers, by the name of the API.

    It is a broker in ZooKeeper mode, without DescribeTopicPartitions. If that is scripted, it is a
    broker in KRaft mode, without LeaderAndIsr.
    """
    answers: dict[ApiKey, Any] = {
        ApiKey.METADATA: metadata(TOPICS, brokers=BROKERS, topic_ids={"t": TOPIC_ID}),
        ApiKey.DESCRIBE_CONFIGS: describe_configs,
        ApiKey.LIST_PARTITION_REASSIGNMENTS: REASSIGNMENTS,
    }
    answers |= {ApiKey[name]: answer for name, answer in script.items()}
    is_kraft = ApiKey.DESCRIBE_TOPIC_PARTITIONS in answers
    without = ApiKey.LEADER_AND_ISR if is_kraft else ApiKey.DESCRIBE_TOPIC_PARTITIONS
    versions = {
        ApiKey(key): (each.first, each.last) for key, each in API_VERSIONS.items() if key != without
    }
    return ScriptedCluster(answers, versions)
