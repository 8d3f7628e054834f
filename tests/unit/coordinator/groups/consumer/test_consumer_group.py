"""A consumer group is what its records say, in whatever order compaction leaves them."""

from __future__ import annotations

from kafkapy.coordinator.groups.consumer.assignment import TopicIdPartition
from kafkapy.coordinator.groups.consumer.consumer_group import ConsumerGroup, ConsumerGroupState
from kafkapy.coordinator.groups.consumer.records import (
    ConsumerKey,
    CurrentAssignment,
    MemberMetadata,
    MemberState,
    RecordType,
    read_consumer_key,
)
from kafkapy.record.builder import RecordData
from tests.harness.cores.consumer_shell import ConsumerShell, facts, settle, topic_id

A = topic_id(1)
P0 = TopicIdPartition(A, 0)


def member(instance_id: str | None = None, assignor: str | None = None) -> MemberMetadata:
    return MemberMetadata(instance_id, None, "c", "/h", ("t",), None, 1, assignor)


def current(member_id: str) -> ConsumerKey:
    return ConsumerKey(RecordType.CURRENT, "g", member_id)


def test_a_partition_belongs_to_who_was_given_it_last() -> None:
    group = ConsumerGroup("g")
    mine = CurrentAssignment(1, 0, MemberState.STABLE, {A: frozenset({0})})
    group.apply(current("a"), mine)
    assert group.owners == {P0: "a"}
    group.apply(current("b"), mine)  # compaction removed what freed it
    group.apply(current("a"), CurrentAssignment(2, 1))
    assert group.owners == {P0: "b"}
    group.apply(current("b"), None)
    assert group.owners == {}


def test_a_partition_that_is_being_revoked_is_not_free() -> None:
    group = ConsumerGroup("g")
    state = MemberState.UNREVOKED_PARTITIONS
    group.apply(current("a"), CurrentAssignment(1, 1, state, {}, {A: frozenset({0})}))
    assert not group.is_free("b", P0)
    assert group.is_free("a", P0)


def test_an_instance_belongs_to_its_last_member() -> None:
    group = ConsumerGroup("g")
    for member_id in ("a1", "a2"):
        group.apply(ConsumerKey(RecordType.MEMBER, "g", member_id), member("i"))
    group.apply(ConsumerKey(RecordType.MEMBER, "g", "a1"), None)
    assert group.static_members == {"i": "a2"}


def test_the_assignor_is_a_matter_of_votes() -> None:
    group = ConsumerGroup("g")
    assert group.preferred_assignor("uniform") == "uniform"
    for member_id, assignor in (("a", "range"), ("b", "range"), ("c", "uniform"), ("d", None)):
        key = ConsumerKey(RecordType.MEMBER, "g", member_id)
        group.apply(key, member(assignor=assignor))
    assert group.preferred_assignor("uniform") == "range"


def test_a_group_without_records_is_blank() -> None:
    group = ConsumerGroup("g")
    assert group.is_blank
    assert group.state is ConsumerGroupState.EMPTY
    group.apply(ConsumerKey(RecordType.GROUP_EPOCH, "g"), 1)
    assert not group.is_blank


def busy_shell() -> ConsumerShell:
    shell = ConsumerShell()
    shell.topics.create("u", 3)
    members = [
        shell.consumer("a", topics=("t", "u")),
        shell.consumer("b", instance_id="ib"),
        shell.consumer("c", topics=None, regex="u.*"),
    ]
    settle(members)
    members[0].leave()
    members[1].leave(-2)
    shell.consumer("b2", instance_id="ib")
    shell.topics.grow("t", 6)
    members[2].beat()
    return shell


def test_another_coordinator_finds_the_same_group() -> None:
    shell = busy_shell()
    replayed = shell.replayed()._core.registry.find("g")
    assert replayed is not None
    assert replayed.consumer is not None
    assert facts(replayed.consumer) == facts(shell.consumers)


def test_a_compacted_log_says_the_same() -> None:
    shell = busy_shell()
    last = {record.key: n for n, (_, record) in enumerate(shell.log)}
    before = facts(shell.consumers)
    shell.log = [row for n, row in enumerate(shell.log) if last[row[1].key] == n]
    shell.fail_over()
    assert facts(shell.consumers) == before


def test_the_keys_of_a_group_are_those_of_its_log() -> None:
    shell = busy_shell()
    alive: dict[bytes, RecordData] = {}
    for _, record in shell.log:
        assert record.key is not None
        if record.value is None:
            alive.pop(record.key, None)
        else:
            alive[record.key] = record
    assert {*alive} <= {*shell.consumers.record_keys()}
    assert all(read_consumer_key(key) for key in shell.consumers.record_keys())
