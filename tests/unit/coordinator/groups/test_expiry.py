"""When offsets are forgotten (KIP-211), and groups with them."""

from __future__ import annotations

import pytest

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.config import GroupConfig
from kafkapy.coordinator.groups.expiry import expired_offsets
from kafkapy.coordinator.groups.group import Group, GroupState
from kafkapy.coordinator.groups.messages import OffsetToCommit
from kafkapy.coordinator.groups.record_codec import OffsetAndMetadata, group_key, offset_key
from tests.harness.cores.group_shell import T0, T1, WALL_MS, GroupShell

OTHER = TopicPartition("other", 0)
MINUTE_MS = 60_000
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


def test_the_last_offset_takes_the_group_with_it() -> None:
    config = GroupConfig(offsets_topic_num_partitions=1, offsets_retention_minutes=1)
    shell = GroupShell(config)
    leader, follower = shell.stable_pair()
    shell.commit(generation_id=1, member_id=leader)
    shell.leave(leader, follower)
    shell.perform(shell.coordinator.expire_offsets(shell.clock.time_ms() + MINUTE_MS - 1))
    assert shell.group().offsets.committed
    shell.perform(shell.coordinator.expire_offsets(shell.clock.time_ms() + MINUTE_MS))
    assert shell.coordinator._core.registry.find("g") is None
    (append,) = shell.appends[-1:]
    assert [(r.key, r.value) for r in append.records] == [
        (offset_key("g", T0), None),
        (group_key("g"), None),
    ]
    assert append.records[0].timestamp == shell.clock.time_ms() + MINUTE_MS
    assert shell.replayed()._core.registry.find("g") is None


def test_an_empty_group_without_offsets_goes_at_the_next_look() -> None:
    shell = GroupShell()
    leader, follower = shell.stable_pair()
    shell.leave(leader, follower)
    shell.perform(shell.coordinator.expire_offsets(WALL_MS))
    assert shell.coordinator._core.registry.find("g") is None
    assert [r.key for r in shell.appends[-1].records] == [group_key("g")]


def test_a_commit_in_flight_keeps_its_group() -> None:
    shell = GroupShell()
    shell.hold()
    shell.commit()
    shell.perform(shell.coordinator.expire_offsets(WALL_MS * 2))
    shell.release()
    assert shell.group().offsets.committed


def test_an_explicit_retention_survives_the_log() -> None:
    shell = GroupShell()
    shell.commit(retention_time_ms=1_000)
    other = shell.replayed()
    other.expire_offsets(WALL_MS + 999)
    assert other.num_offsets() == 1
    other.expire_offsets(WALL_MS + 1_000)
    assert other.num_offsets() == 0


def test_deleted_partitions_leave_no_offsets() -> None:
    shell = GroupShell()
    for group_id in ("one", "two"):
        rows = {T0: OffsetToCommit(1), T1: OffsetToCommit(2)}
        shell.commit(group_id=group_id, offsets=rows)
    shell.perform(shell.coordinator.on_partitions_deleted([T0, OTHER], WALL_MS))
    for group_id in ("one", "two"):
        assert list(shell.group(group_id).offsets.committed) == [T1]
    assert [r.key for a in shell.appends[-2:] for r in a.records] == [
        offset_key("one", T0),
        offset_key("two", T0),
    ]


def test_nothing_is_appended_when_nothing_is_due() -> None:
    shell = GroupShell()
    shell.commit()
    before = len(shell.appends)
    shell.perform(shell.coordinator.expire_offsets(WALL_MS))
    shell.perform(shell.coordinator.on_partitions_deleted([OTHER], WALL_MS))
    assert len(shell.appends) == before
