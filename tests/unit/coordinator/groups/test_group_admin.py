"""Fields that DescribeGroups and ListGroups answer with."""

from __future__ import annotations

from kafkapy.coordinator.groups.messages import (
    DescribedMember,
    DescribeGroups,
    ListedGroup,
    ListGroups,
)
from tests.harness.cores.group_shell import SUBSCRIBED_T, GroupShell


def test_a_stable_group_shows_metadata_and_assignments() -> None:
    shell = GroupShell()
    leader, follower = shell.stable_pair()
    (group,) = shell.ask(shell.coordinator.describe_groups, DescribeGroups(["g"])).groups
    assert (group.state, group.protocol_type, group.protocol_data) == (
        "Stable",
        "consumer",
        "range",
    )
    assert group.members == [
        DescribedMember(leader, None, "client", "/127.0.0.1", SUBSCRIBED_T, b"L"),
        DescribedMember(follower, None, "client", "/127.0.0.1", SUBSCRIBED_T, b"F"),
    ]


def test_a_listed_group_says_what_it_is() -> None:
    shell = GroupShell()
    shell.stable_pair("stable")
    shell.commit(group_id="simple")
    assert shell.ask(shell.coordinator.list_groups, ListGroups()).groups == [
        ListedGroup("stable", "consumer", "Stable", "classic"),
        ListedGroup("simple", "", "Empty", "classic"),
    ]
