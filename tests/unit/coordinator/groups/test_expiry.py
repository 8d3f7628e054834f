"""When an offset expires (KIP-211)."""

from __future__ import annotations

import pytest

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.groups.expiry import expired_offsets
from kafkapy.coordinator.groups.group import Group, GroupState
from kafkapy.coordinator.groups.record_codec import OffsetAndMetadata
from tests.harness.cores.call_counts import assert_at_most
from tests.harness.cores.group_shell import T0, GroupShell

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


MANY = [TopicPartition("deleted", index) for index in range(1_000)]


def shell_of(groups: int) -> GroupShell:
    shell = GroupShell()
    for number in range(groups):
        shell.commit(group_id=f"g-{number}")
    return shell


def test_a_topic_of_many_partitions_costs_groups_that_never_used_it_little() -> None:
    """Each broker does this in one go for all its groups, and serves nobody meanwhile."""
    shell = shell_of(50)
    coordinator = shell.coordinator
    assert_at_most(50, lambda: coordinator.on_partitions_deleted(MANY, 2_000), 50)
    assert coordinator.num_offsets() == 50


def test_it_costs_groups_that_are_just_being_loaded_little() -> None:
    shell = shell_of(50)
    coordinator = shell.new_coordinator()
    coordinator.start_loading(0, 6)
    coordinator.on_partitions_deleted(MANY, 2_000)
    for offset, (_, record) in enumerate(shell.log):
        coordinator.replay(0, offset, record)
    assert_at_most(50, lambda: coordinator.finish_loading(0, 0), 50)
    assert coordinator.num_offsets() == 50


def test_of_many_deleted_partitions_those_that_are_known_go() -> None:
    shell = GroupShell()
    shell.commit()
    shell.perform(shell.coordinator.on_partitions_deleted([*MANY, T0], 2_000))
    assert shell.coordinator.num_offsets() == 0
