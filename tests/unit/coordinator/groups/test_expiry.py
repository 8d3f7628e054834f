"""When an offset expires (KIP-211)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.config import GroupConfig
from kafkapy.coordinator.groups.expiry import expired_offsets
from kafkapy.coordinator.groups.group import Group, GroupState
from kafkapy.coordinator.groups.messages import OffsetToCommit
from kafkapy.coordinator.groups.record_codec import OffsetAndMetadata
from tests.harness.cores.call_counts import assert_at_most
from tests.harness.cores.consumer_shell import ConsumerShell
from tests.harness.cores.group_shell import T0, GroupShell, replay

OTHER = TopicPartition("other", 0)
BOTH = [T0, OTHER]
RETENTION_MS = 100
RETENTION_MINUTES = GroupConfig(1).offsets_retention_minutes

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
    for partition in BOTH:
        group.offsets.replay(partition, OffsetAndMetadata(1, -1, "", 1_000), 0)
    for partition in BOTH:
        expiry_ms = expiries[partition.topic]
        for time_ms in (1_099, 1_100, 5_099, 5_100, 10**9):
            due = partition in expired_offsets(group, BOTH, time_ms, RETENTION_MS)
            assert due == (expiry_ms is not None and time_ms >= expiry_ms), time_ms


def test_an_old_record_without_a_time_counts_from_the_commit() -> None:
    group = Group("g", 0, None)
    group.protocol_type = "consumer"
    group.offsets.replay(T0, OffsetAndMetadata(1, -1, "", 1_000), 0)
    assert expired_offsets(group, [T0], 1_099, RETENTION_MS) == []
    assert expired_offsets(group, [T0], 1_100, RETENTION_MS) == [T0]


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
        replay(coordinator, 0, offset, record)
    assert_at_most(50, lambda: coordinator.finish_loading(0, 0), 50)
    assert coordinator.num_offsets() == 50


def test_of_many_deleted_partitions_those_that_are_known_go() -> None:
    shell = GroupShell()
    shell.commit()
    shell.perform(shell.coordinator.on_partitions_deleted([*MANY, T0], 2_000))
    assert shell.coordinator.num_offsets() == 0


def in_steps(shell: GroupShell) -> Iterator[list[int]]:
    """The check of the retention when all commits have expired. Yields the numbers of records in
    the batches of each step."""
    later_ms = shell.clock.time_ms() + RETENTION_MINUTES * 60_000
    for effects in shell.coordinator.expire_offsets(later_ms):
        yield [len(append.records) for append in effects.appends]
        shell.perform(effects)


def test_other_requests_are_served_while_the_offsets_of_many_groups_expire() -> None:
    shell = shell_of(300)
    steps = [*in_steps(shell)]
    assert sum(map(len, steps)) == 300
    assert max(map(len, steps)) <= 20
    assert shell.coordinator.num_offsets() == 0


def test_other_requests_are_served_while_many_offsets_of_a_group_expire() -> None:
    shell = GroupShell()
    shell.commit(offsets={each: OffsetToCommit(1) for each in MANY})
    steps = [*in_steps(shell)]
    assert sum(map(sum, steps)) == len(MANY)
    assert max(map(sum, steps)) <= 512
    assert not shell.replayed().num_offsets()


def test_a_commit_between_two_steps_does_not_expire_with_the_earlier_ones() -> None:
    shell = GroupShell()
    shell.commit(offsets={each: OffsetToCommit(1) for each in MANY})
    check = in_steps(shell)
    next(check)
    left = shell.group().offsets.may_expire()
    shell.clock.now_ms += 1
    shell.commit(offsets={left[-1]: OffsetToCommit(2)})
    shell.hold()
    shell.commit(offsets={left[-2]: OffsetToCommit(3)})
    assert sum(map(sum, check)) == len(left) - 2
    shell.release()
    for group in (shell.group(), shell.replayed()._core.registry.find("g")):
        assert group is not None
        assert {p: c.value.offset for p, c in group.offsets.committed.items()} == {
            left[-1]: 2,
            left[-2]: 3,
        }


def test_other_requests_are_served_while_many_groups_without_offsets_are_removed() -> None:
    shell = GroupShell()
    for number in range(100):
        member_id, _ = shell.join_new(f"g-{number}")
        shell.leave(member_id, group_id=f"g-{number}")
    shell.advance(3_000)
    steps = [*in_steps(shell)]
    assert sum(map(len, steps)) == 100
    assert max(map(len, steps)) <= 20


def test_a_consumer_that_joins_between_two_steps_keeps_the_offsets_of_its_topic() -> None:
    shell = ConsumerShell()
    subscribed = [TopicPartition("t", index) for index in range(1_000)]
    shell.commit(offsets={each: OffsetToCommit(1) for each in subscribed})
    check = in_steps(shell)
    next(check)
    left = shell.group().offsets.may_expire()
    assert left
    shell.consumer("m", topics=["t"])
    assert sum(map(sum, check)) == 0
    assert shell.group().offsets.may_expire() == left


def test_a_partition_that_is_lost_between_two_steps_is_left_to_its_next_coordinator() -> None:
    shell = shell_of(300)
    check = in_steps(shell)
    next(check)
    shell.perform(shell.coordinator.unload(0))
    assert sum(map(sum, check)) == 0
