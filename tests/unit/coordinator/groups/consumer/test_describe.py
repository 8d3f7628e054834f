"""Consumer groups as an administrator sees and changes them."""

from __future__ import annotations

from typing import Any

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.groups.consumer.messages import (
    DescribeConsumerGroups,
    DescribedConsumerGroup,
    NamedPartitions,
)
from kafkapy.coordinator.groups.messages import (
    DeleteGroups,
    DeleteOffsets,
    DescribeGroups,
    ListGroups,
)
from tests.harness.cores.consumer_shell import ConsumerShell, settle
from tests.harness.cores.group_shell import T0

RETENTION_MS = 10_080 * 60_000


def describe(shell: ConsumerShell, *group_ids: str) -> list[DescribedConsumerGroup]:
    request = DescribeConsumerGroups(group_ids)
    groups: list[DescribedConsumerGroup] = shell.ask(
        shell.coordinator.describe_consumer_groups, request
    ).groups
    return groups


def listed(shell: ConsumerShell, **filters: Any) -> list[tuple[str, ...]]:
    [rows] = shell.ask(shell.coordinator.list_groups, ListGroups(**filters)).groups
    return [tuple(row) for row in rows]


def deleted(shell: ConsumerShell) -> ErrorCode:
    error = shell.ask(shell.coordinator.delete_groups, DeleteGroups(["g"])).errors["g"]
    assert isinstance(error, ErrorCode)
    return error


def test_a_group_with_its_members() -> None:
    shell = ConsumerShell()
    first = shell.consumer("a", instance_id="i")
    shell.consumer("b", topics=None, regex="t")
    first.beat()
    (group,) = describe(shell, "g")
    assert (group.error, group.state, group.epoch, group.target_epoch, group.assignor) == (
        ErrorCode.NONE,
        "Reconciling",
        2,
        2,
        "uniform",
    )
    one, two = group.members
    assert (one.member_id, one.instance_id, one.member_epoch) == ("a", "i", 1)
    assert one.subscribed_names == ("t",)
    assert one.assigned == [NamedPartitions(shell.t, "t", [0, 1, 2, 3])]  # two are being revoked
    assert one.target == [NamedPartitions(shell.t, "t", [0, 1])]
    assert (two.subscribed_names, two.subscribed_regex, two.member_epoch) == ((), "t", 2)
    assert two.assigned == []
    assert two.target == [NamedPartitions(shell.t, "t", [2, 3])]


def test_what_is_no_consumer_group() -> None:
    shell = ConsumerShell()
    shell.commit(group_id="classic")
    not_found = ErrorCode.GROUP_ID_NOT_FOUND
    assert describe(shell, "classic", "unknown", "") == [
        DescribedConsumerGroup("classic", not_found, "Group classic is not a consumer group."),
        DescribedConsumerGroup("unknown", not_found, "Group unknown not found."),
        DescribedConsumerGroup("", ErrorCode.INVALID_GROUP_ID),
    ]


def test_the_classic_description_of_a_consumer_group_is_dead() -> None:
    shell = ConsumerShell()
    shell.consumer("a")
    (group,) = shell.ask(shell.coordinator.describe_groups, DescribeGroups(["g"])).groups
    assert (group.error, group.state, group.members) == (ErrorCode.NONE, "Dead", [])


def test_a_list_tells_the_kinds_of_groups_apart() -> None:
    shell = ConsumerShell()
    shell.commit(group_id="classic")
    shell.consumer("a")
    row = ("g", "consumer", "Stable", "consumer")
    assert row in listed(shell)
    assert listed(shell, types_filter=["Consumer"]) == [row]
    assert listed(shell, types_filter=["classic"]) == [("classic", "", "Empty", "classic")]
    assert listed(shell, states_filter=["stable"]) == [row]
    assert listed(shell, states_filter=["assigning"]) == []


def test_a_group_with_members_is_not_deleted() -> None:
    shell = ConsumerShell()
    member = shell.consumer("a")
    shell.commit(member_id="a", generation_id=1)
    assert deleted(shell) is ErrorCode.NON_EMPTY_GROUP
    member.leave()
    assert deleted(shell) is ErrorCode.NONE
    assert listed(shell) == []
    assert shell.replayed()._core.registry.find("g") is None


def test_offsets_of_a_subscribed_topic_are_not_deleted() -> None:
    shell = ConsumerShell()
    member = shell.consumer("a")
    other = TopicPartition("u", 0)
    request = DeleteOffsets("g", [T0, other])
    errors = shell.ask(shell.coordinator.delete_offsets, request).errors
    assert errors == {T0: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, other: ErrorCode.NONE}
    member.leave()
    errors = shell.ask(shell.coordinator.delete_offsets, request).errors
    assert errors == {T0: ErrorCode.NONE, other: ErrorCode.NONE}


def test_offsets_expire_but_for_subscribed_topics() -> None:
    shell = ConsumerShell()
    member = shell.consumer("a")
    shell.commit(member_id="a", generation_id=1)
    later = shell.clock.time_ms() + RETENTION_MS
    shell.expire_offsets(later)
    assert T0 in shell.group().offsets.committed
    assert [*shell.consumers.members] == ["a"]
    member.leave()
    shell.expire_offsets(later)
    assert listed(shell) == []
    assert shell.replayed()._core.registry.find("g") is None


def test_classic_metrics_do_not_count_consumer_groups() -> None:
    shell = ConsumerShell()
    settle([shell.consumer("a")])
    assert shell.coordinator.groups_by_state().total() == 0
