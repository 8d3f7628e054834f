"""Rows of a description: whose, in which order, with which lag."""

from kafkapy.admin.groups import GroupDescription, GroupMember
from kafkapy.client.metadata import Broker
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.tools.groups.group_rows import member_rows, offset_rows, partitions_of

A, B, C, GONE = (TopicPartition("t", index) for index in range(4))


def member(name: str, *partitions: TopicPartition) -> GroupMember:
    return GroupMember(f"{name}-id", None, name, "/h", partitions)


GROUP = GroupDescription(
    "g",
    "Stable",
    "Classic",
    "range",
    Broker(1, "b", 9092),
    (member("none"), member("one", C), member("two", B, A)),
)
COMMITTED = {A: 4, C: 12, GONE: 3}
ENDS = {A: 10, B: 5, C: 10}


def test_members_come_busiest_first_then_what_nobody_owns() -> None:
    rows = offset_rows(GROUP, COMMITTED, ENDS)
    assert [(row.partition, row.client_id) for row in rows] == [
        (A, "two"),
        (B, "two"),
        (C, "one"),
        (GONE, None),
    ]


def test_lag_needs_a_commit_and_an_end() -> None:
    rows = offset_rows(GROUP, COMMITTED, ENDS)
    assert [(row.current_offset, row.log_end_offset, row.lag) for row in rows] == [
        (4, 10, 6),
        (None, 5, None),
        (12, 10, -2),
        (3, None, None),
    ]


def test_members_without_partitions_are_members() -> None:
    assert [(row.consumer_id, row.assignment) for row in member_rows(GROUP)] == [
        ("two-id", (A, B)),
        ("one-id", (C,)),
        ("none-id", ()),
    ]
    assert partitions_of(GROUP, COMMITTED) == [A, B, C, GONE]
