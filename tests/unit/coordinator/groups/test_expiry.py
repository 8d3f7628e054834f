"""When an offset expires (KIP-211)."""

from __future__ import annotations

import pytest

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.groups.expiry import expired_offsets
from kafkapy.coordinator.groups.group import Group, GroupState
from kafkapy.coordinator.groups.record_codec import OffsetAndMetadata
from tests.harness.cores.group_shell import T0

OTHER = TopicPartition("other", 0)
RETENTION_MS = 100

# Offsets of t-0 and other-0, both committed at 1000; the group entered its state at 5000.
# kind of group, its state, what it subscribes to: when each offset expires (None: never).
CASES = [
    (None, "Empty", None, {"t": 1_100, "other": 1_100}),
    ("consumer", "Empty", frozenset(), {"t": 5_100, "other": 5_100}),
    ("connect", "Empty", None, {"t": 5_100, "other": 5_100}),
    ("consumer", "Stable", frozenset({"t"}), {"t": None, "other": 1_100}),
    ("consumer", "Stable", None, {"t": None, "other": None}),
    ("connect", "Stable", None, {"t": None, "other": None}),
    ("consumer", "PreparingRebalance", frozenset({"t"}), {"t": None, "other": None}),
    ("consumer", "CompletingRebalance", frozenset({"t"}), {"t": None, "other": None}),
]


@pytest.mark.parametrize(("protocol_type", "state", "subscribed", "expiries"), CASES)
def test_when_an_offset_expires(
    protocol_type: str | None,
    state: str,
    subscribed: frozenset[str] | None,
    expiries: dict[str, int | None],
) -> None:
    group = Group("g", 0, 5_000)
    group.state = GroupState(state)
    group.protocol_type = protocol_type
    group.subscribed_topics = subscribed
    for partition in (T0, OTHER):
        group.offsets.replay(partition, OffsetAndMetadata(1, -1, "", 1_000), 0)
    for partition in (T0, OTHER):
        expiry_ms = expiries[partition.topic]
        for time_ms in (1_099, 1_100, 5_099, 5_100, 10**9):
            due = partition in expired_offsets(group, time_ms, RETENTION_MS)
            assert due == (expiry_ms is not None and time_ms >= expiry_ms), time_ms


def test_an_old_record_without_a_time_counts_from_the_commit() -> None:
    group = Group("g", 0, None)
    group.protocol_type = "consumer"
    group.offsets.replay(T0, OffsetAndMetadata(1, -1, "", 1_000), 0)
    assert expired_offsets(group, 1_099, RETENTION_MS) == []
    assert expired_offsets(group, 1_100, RETENTION_MS) == [T0]
