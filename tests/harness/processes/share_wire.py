"""Requests of a member of a share group, by a plain connection."""

from __future__ import annotations

from typing import Any

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.messages import alter_share_group_offsets, find_coordinator, share_fetch
from tests.harness.processes.wire import Wire

MEMBER = "me"


def has_coordinators(wire: Wire, topic: str, group: str) -> bool:
    """Whether the coordinators of the group, and of its state of the topic, serve requests."""
    for key_type, key in ((0, group), (2, f"{group}:{wire.topic_ids[topic]}:0")):
        request = find_coordinator.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        if wire.ask(request, 6).coordinators[0].error_code != ErrorCode.NONE:
            return False
    return True


def alter(wire: Wire, topic: str, group: str, offset: int = 0) -> Any:
    """Set the offset of partition 0 at which the group begins."""
    row = alter_share_group_offsets.AlterShareGroupOffsetsRequestPartition(start_offset=offset)
    rows = alter_share_group_offsets.AlterShareGroupOffsetsRequestTopic(
        topic_name=topic, partitions=[row]
    )
    request = alter_share_group_offsets.AlterShareGroupOffsetsRequest(group_id=group, topics=[rows])
    return wire.ask(request, 0)


def fetch(
    wire: Wire, topic: str, group: str, epoch: int, version: int = 1, wait_ms: int = 10_000
) -> Any:
    """Fetch from partition 0."""
    row = share_fetch.FetchPartition(partition_index=0)
    rows = share_fetch.FetchTopic(topic_id=wire.topic_ids[topic], partitions=[row])
    request = share_fetch.ShareFetchRequest(
        group_id=group, member_id=MEMBER, share_session_epoch=epoch, max_wait_ms=wait_ms,
        min_bytes=1, max_records=100, batch_size=100, topics=[rows],
    )  # fmt: skip
    return wire.ask(request, version)
