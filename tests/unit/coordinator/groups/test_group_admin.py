"""Fields that DescribeGroups and ListGroups answer with, and deletions, which wait for the log."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.groups.consumer.messages import ConsumerHeartbeat
from kafkapy.coordinator.groups.messages import (
    DeleteGroups,
    DeleteGroupsResult,
    DeleteOffsets,
    DeleteOffsetsResult,
    DescribedMember,
    DescribeGroups,
    ListedGroup,
    ListGroups,
)
from tests.harness.cores.consumer_shell import ConsumerShell
from tests.harness.cores.group_shell import SUBSCRIBED_T, T0, GroupShell


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
    [rows] = shell.ask(shell.coordinator.list_groups, ListGroups()).groups
    assert rows == [
        ListedGroup("stable", "consumer", "Stable", "classic"),
        ListedGroup("simple", "", "Empty", "classic"),
    ]


def first_heartbeat(group_id: str, member_id: str) -> ConsumerHeartbeat:
    return ConsumerHeartbeat(
        group_id, member_id, 0, rebalance_timeout_ms=1, subscribed_names=["t"], owned={}
    )


def test_groups_are_listed_in_pieces_that_follow_replaced_and_deleted_groups() -> None:
    shell = ConsumerShell()
    names = [f"g-{number}" for number in range(1_000)]
    for name in names:
        shell.commit(group_id=name)
    pieces = iter(shell.ask(shell.coordinator.list_groups, ListGroups()).groups)
    first = next(pieces)
    shell.ask(shell.coordinator.delete_groups, DeleteGroups([names[998]]))
    shell.ask(shell.coordinator.consumer_heartbeat, first_heartbeat(names[999], "m"))
    others = [*pieces]
    assert max(map(len, [first, *others])) <= 256
    rows = [*first, *chain.from_iterable(others)]
    assert [row.group_id for row in rows] == [*names[:998], names[999]]
    assert (rows[-1].group_type, rows[-1].state) == ("consumer", "Stable")


def test_consumer_groups_with_many_members_are_listed_one_by_one() -> None:
    shell = ConsumerShell()
    for name in ("g", "h"):
        for number in range(300):
            shell.ask(shell.coordinator.consumer_heartbeat, first_heartbeat(name, f"m{number}"))
    found = shell.ask(shell.coordinator.list_groups, ListGroups()).groups
    assert [[row.group_id for row in piece] for piece in found] == [["g"], ["h"], []]


def delete_groups(shell: GroupShell) -> Any:
    return shell.call(shell.coordinator.delete_groups, DeleteGroups(["g", "nobody", "h"]))


def delete_offsets(shell: GroupShell) -> Any:
    return shell.call(shell.coordinator.delete_offsets, DeleteOffsets("g", [T0]))


def of_groups(g: ErrorCode, h: ErrorCode) -> DeleteGroupsResult:
    return DeleteGroupsResult({"g": g, "nobody": ErrorCode.GROUP_ID_NOT_FOUND, "h": h})


def two_groups() -> GroupShell:
    shell = GroupShell()
    shell.commit(group_id="g")
    shell.commit(group_id="h")
    shell.hold()
    return shell


@pytest.mark.parametrize(
    ("delete", "result"),
    [
        (delete_groups, of_groups(ErrorCode.NONE, ErrorCode.NONE)),
        (delete_offsets, DeleteOffsetsResult(ErrorCode.NONE, {T0: ErrorCode.NONE})),
    ],
)
def test_a_deletion_is_answered_when_it_is_replicated(
    delete: Callable[[GroupShell], Any], result: object
) -> None:
    """Else the next coordinator may have what was deleted."""
    shell = two_groups()
    token = delete(shell)
    assert token not in shell.replies
    shell.release()
    assert shell.replies[token] == result


@pytest.mark.parametrize(
    ("failure", "answer", "appends"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT, [-1, 0]),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REQUEST_TIMED_OUT, [-1]),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR, [-1]),
    ],
)
def test_a_deletion_that_is_not_replicated_is_an_error(
    failure: ErrorCode, answer: ErrorCode, appends: list[int]
) -> None:
    """The log gets the tombstones all the same: this coordinator has forgotten the offsets."""
    shell = two_groups()
    before = len(shell.appends)
    token = delete_offsets(shell)
    shell.release(failure)
    assert shell.replies[token] == DeleteOffsetsResult(answer)
    assert [append.required_acks for append in shell.appends[before:]] == appends
    shell.hold()
    token = delete_groups(shell)
    shell.complete(shell.held.pop(), failure)  # type: ignore[union-attr]
    assert shell.replies[token] == DeleteGroupsResult(
        {
            "g": ErrorCode.GROUP_ID_NOT_FOUND,
            "nobody": ErrorCode.GROUP_ID_NOT_FOUND,
            "h": answer,
        }
    )
