"""DescribeGroups, ListGroups and DeleteGroups."""

from __future__ import annotations

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.groups.messages import (
    DeleteGroups,
    DescribedGroup,
    DescribedMember,
    DescribeGroups,
    ListedGroup,
    ListGroups,
)
from tests.harness.cores.group_shell import SUBSCRIBED_T, GroupShell


def listed(shell: GroupShell, **filters: list[str]) -> list[str]:
    result = shell.ask(shell.coordinator.list_groups, ListGroups(**filters))
    assert result.error is ErrorCode.NONE
    return [group.group_id for group in result.groups]


def describe(shell: GroupShell, *group_ids: str) -> list[DescribedGroup]:
    request = DescribeGroups(group_ids)
    groups: list[DescribedGroup] = shell.ask(shell.coordinator.describe_groups, request).groups
    return groups


def a_few() -> GroupShell:
    shell = GroupShell()
    shell.stable_pair("stable")
    shell.commit(group_id="simple")
    shell.join(group_id="joining", requires_known_member_id=False)
    return shell


def test_a_stable_group_shows_metadata_and_assignments() -> None:
    shell = GroupShell()
    leader, follower = shell.stable_pair()
    (group,) = describe(shell, "g")
    assert (group.state, group.protocol_type, group.protocol_data) == (
        "Stable",
        "consumer",
        "range",
    )
    assert group.members == [
        DescribedMember(leader, None, "client", "/127.0.0.1", SUBSCRIBED_T, b"L"),
        DescribedMember(follower, None, "client", "/127.0.0.1", SUBSCRIBED_T, b"F"),
    ]


def test_a_rebalancing_group_shows_who_is_in_it() -> None:
    shell = GroupShell()
    leader, _ = shell.stable_pair()
    shell.join(leader)
    (group,) = describe(shell, "g")
    assert (group.state, group.protocol_data) == ("PreparingRebalance", "")
    assert [(m.metadata, m.assignment) for m in group.members] == [(b"", b""), (b"", b"")]


def test_an_unknown_group_is_dead_without_error() -> None:
    shell = a_few()
    groups = describe(shell, "unknown", "simple")
    assert groups == [
        DescribedGroup("unknown", state="Dead"),
        DescribedGroup("simple", state="Empty"),
    ]


def test_groups_are_listed_by_state_and_type() -> None:
    shell = a_few()
    assert listed(shell) == ["stable", "simple", "joining"]
    assert listed(shell, states_filter=["EMPTY", "stable"]) == ["stable", "simple"]
    assert listed(shell, states_filter=["NoSuchState"]) == []
    assert listed(shell, types_filter=["Classic", "consumer"]) == ["stable", "simple", "joining"]
    assert listed(shell, types_filter=["consumer"]) == []


def test_a_listed_group_says_what_it_is() -> None:
    shell = a_few()
    result = shell.ask(shell.coordinator.list_groups, ListGroups())
    assert result.groups[:2] == [
        ListedGroup("stable", "consumer", "Stable", "classic"),
        ListedGroup("simple", "", "Empty", "classic"),
    ]


def test_empty_groups_are_deleted_one_by_one() -> None:
    shell = a_few()
    request = DeleteGroups(["simple", "stable", "unknown", "simple"])
    assert shell.ask(shell.coordinator.delete_groups, request).errors == {
        "simple": ErrorCode.NONE,
        "stable": ErrorCode.NON_EMPTY_GROUP,
        "unknown": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert listed(shell) == ["stable", "joining"]


def test_a_deleted_group_takes_its_pending_ids_with_it() -> None:
    shell = GroupShell()
    pending = shell.replies[shell.join()].member_id
    shell.ask(shell.coordinator.delete_groups, DeleteGroups(["g"]))
    assert shell.coordinator.next_deadline_ms() is None
    assert shell.replies[shell.join(pending)].error is ErrorCode.UNKNOWN_MEMBER_ID
