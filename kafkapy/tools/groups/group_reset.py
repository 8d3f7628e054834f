"""Resets offsets of groups on a cluster: observe, plan with `offset_reset`, commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kafkapy.admin.errors import topic_error
from kafkapy.admin.group_offsets import commit_offsets, committed_offsets
from kafkapy.admin.groups import describe_group
from kafkapy.client.cluster import Cluster
from kafkapy.client.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.tools.groups.offset_csv import GroupOffsets
from kafkapy.tools.groups.offset_reset import (
    Offsets,
    Reset,
    Scenario,
    TopicScope,
    Warn,
    expand,
    plan,
)

RESETTABLE = ("Empty", "Dead")


class ClusterOffsets:
    """The `OffsetSource` of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return self.at(partitions, EARLIEST_TIMESTAMP)

    def latest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return self.at(partitions, LATEST_TIMESTAMP)

    def at(self, partitions: Iterable[TopicPartition], timestamp_ms: int) -> Offsets:
        results = self._cluster.list_offsets(dict.fromkeys(partitions, timestamp_ms))
        for tp, result in results.items():
            if result.error:
                raise ApiError(result.error, result.message or f"{tp}: {result.error.name}")
        return {tp: result.offset for tp, result in results.items()}


def topic_partitions(cluster: Cluster, topic: str) -> list[int]:
    """The partitions of a topic.

    Raises:
        ApiError: UNKNOWN_TOPIC_OR_PARTITION, or the broker does not describe the topic.
    """
    found = cluster.metadata([topic]).topics[topic]
    if found.error is not ErrorCode.NONE:
        raise topic_error(found.error, topic, f"Topic {topic} does not exist")
    return list(found.partitions)


def plan_groups(
    cluster: Cluster,
    groups: Sequence[str],
    reset: Reset,
    scopes: Sequence[TopicScope] | None,
    file: GroupOffsets,
    report_error: Warn,
    warn: Warn,
) -> dict[str, Offsets]:
    """New offsets by group. If `scopes` is None, all partitions with a committed offset are reset.

    Groups with members, and groups without lines in the file, are refused and left out.

    Raises:
        ConfigError, ApiError: from `offset_reset.plan`.
    """
    source = ClusterOffsets(cluster)
    planned: dict[str, Offsets] = {}
    for group_id in groups:
        state = describe_group(cluster, group_id).state
        if state not in RESETTABLE:
            report_error(
                f"Assignments can only be reset if the group '{group_id}' is inactive, but the"
                f" current state is {state}."
            )
            continue
        if reset.scenario is Scenario.FROM_FILE:
            if group_id not in file:
                report_error(f"No reset plan for group {group_id} found")
                continue
            reset = Reset(Scenario.FROM_FILE, offsets=file[group_id])
            planned[group_id] = plan(reset, [], {}, source, warn)
            continue
        committed = {tp: each.offset for tp, each in committed_offsets(cluster, group_id).items()}
        if scopes is None:
            partitions = list(committed)
        else:
            partitions = expand(scopes, lambda topic: topic_partitions(cluster, topic))
        planned[group_id] = plan(reset, partitions, committed, source, warn)
    return planned


def commit(cluster: Cluster, planned: Mapping[str, Offsets], committed: dict[str, Offsets]) -> None:
    """Commit the planned offsets, group by group. Adds each committed group to `committed`.

    Raises:
        ApiError: a coordinator refused.
    """
    for group_id, offsets in planned.items():
        if offsets:
            commit_offsets(cluster, group_id, offsets)
        committed[group_id] = offsets
