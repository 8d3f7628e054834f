"""Every request in every state of its group, and of its coordinator, as two tables."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import partition_for_key
from kafkapy.coordinator.config import GroupConfig
from kafkapy.coordinator.groups.group import GroupState
from kafkapy.coordinator.groups.messages import (
    CommitOffsets,
    CommitOffsetsResult,
    DeleteGroups,
    DeleteGroupsResult,
    DeleteOffsets,
    DeleteOffsetsResult,
    DescribeGroups,
    FetchOffsets,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    LeaveGroupResult,
    LeavingMember,
    ListGroups,
    OffsetToCommit,
    SyncGroup,
)
from tests.harness.cores.group_shell import SUBSCRIBED_T, T0, GroupShell
from tests.harness.scenarios.groups import GroupWorld

GIVEN = {
    "Empty": ["a and b form a group", "LeaveGroup of a b"],
    "PreparingRebalance": ["a and b form a group", "new joins"],
    "CompletingRebalance": ["a and b have joined"],
    "Stable": ["a and b form a group"],
    "Dead": ["a and b form a group", "LeaveGroup of a b", "delete groups g"],
}
"""Steps that lead to each state, of a group whose leader was a and whose follower was b."""

# A step of the scenarios: its answer in each state, and `>` with the letter of another next state.
STATES = {
    "E": "Empty",
    "P": "PreparingRebalance",
    "C": "CompletingRebalance",
    "S": "Stable",
    "D": "Dead",
}
ANSWERS = {
    "ok": "NONE",
    "waits": "waits",
    "ID": "MEMBER_ID_REQUIRED",
    "WHO": "UNKNOWN_MEMBER_ID",
    "OLD": "ILLEGAL_GENERATION",
    "REJOIN": "REBALANCE_IN_PROGRESS",
    "PROTO": "INCONSISTENT_GROUP_PROTOCOL",
    "USED": "GROUP_SUBSCRIBED_TO_TOPIC",
    "BUSY": "NON_EMPTY_GROUP",
    "NOGROUP": "GROUP_ID_NOT_FOUND",
    "ELSEWHERE": "NOT_COORDINATOR",
    "LOADING": "COORDINATOR_LOAD_IN_PROGRESS",
    "CLOSED": "COORDINATOR_NOT_AVAILABLE",
    "BADID": "INVALID_GROUP_ID",
}
BY_STATE = """
step                                        E        P        C        S        D
c asks for an id                            ID       ID       ID       ID       ID>E
c joins, version 3                          waits>P  waits    waits>P  waits>P  waits>P
a joins                                     WHO      waits    ok       waits>P  WHO
b joins                                     WHO      waits    ok       ok       WHO
b joins, topics u                           WHO      waits    waits>P  waits>P  WHO
stranger joins                              WHO      WHO      WHO      WHO      WHO
c asks for an id, type connect              ID       PROTO    PROTO    PROTO    ID>E
c asks for an id, protocols sticky          ID       PROTO    PROTO    PROTO    ID>E
c asks for an id, protocols none            PROTO    PROTO    PROTO    PROTO    PROTO>E
a syncs                                     WHO      REJOIN   ok>S     ok       WHO
b syncs                                     WHO      REJOIN   waits    ok       WHO
b syncs, generation 0                       WHO      OLD      OLD      OLD      WHO
stranger syncs                              WHO      WHO      WHO      WHO      WHO
b syncs, protocol sticky                    WHO      PROTO    PROTO    PROTO    WHO
b syncs, type connect                       WHO      PROTO    PROTO    PROTO    WHO
b heartbeats                                WHO      REJOIN   ok       ok       WHO
b heartbeats, generation 0                  WHO      OLD      OLD      OLD      WHO
stranger heartbeats                         WHO      WHO      WHO      WHO      WHO
a leaves                                    WHO      ok       ok>P     ok>P     WHO
stranger leaves                             WHO      WHO      WHO      WHO      WHO
b commits t-0=1                             WHO      ok       REJOIN   ok       NOGROUP
b commits t-0=1, generation 0               WHO      OLD      OLD      OLD      NOGROUP
stranger commits t-0=1                      WHO      WHO      WHO      WHO      NOGROUP
admin commits t-0=1                         ok       WHO      WHO      WHO      ok>E
delete offsets of t-0                       ok>D     USED     USED     USED     NOGROUP
delete offsets of other-0                   ok>D     ok       ok       ok       NOGROUP
delete groups g                             ok>D     BUSY     BUSY     BUSY     NOGROUP
the partition moves away                    ok>D     ok>D     ok>D     ok>D     ok
"""


def rows(table: str) -> list[tuple[str, str, str]]:
    """(row name, column name, cell) of a table in text."""
    head, *lines = [re.split(r" {2,}", line) for line in table.strip().splitlines()]
    assert all(len(line) == len(head) for line in lines)
    return [(line[0], *cell) for line in lines for cell in zip(head[1:], line[1:], strict=True)]


def state(world: GroupWorld) -> str:
    group = world.group()
    return "Dead" if group is None else group.state


def answer(result: Any) -> str:
    """The name of the only error of a result."""
    match result:
        case LeaveGroupResult(error=ErrorCode.NONE):
            [(_, error)] = result.members
        case (
            CommitOffsetsResult() | DeleteGroupsResult() | DeleteOffsetsResult(error=ErrorCode.NONE)
        ):
            [error] = result.errors.values()
        case _:
            error = result.error
    return str(error.name)


@pytest.mark.parametrize(("step", "column", "cell"), rows(BY_STATE))
def test_every_step_in_every_state(step: str, column: str, cell: str) -> None:
    world = GroupWorld()
    for given in [*GIVEN[STATES[column]], "stranger makes up an id"]:
        world.perform(given)
    assert state(world) == STATES[column]
    expected, _, next_state = cell.partition(">")
    before = world.token
    world.perform(step)
    result = world.shell.replies.get(world.token)
    if result is None:
        actual = "waits"
    else:
        actual = "NONE" if world.token == before else answer(result)
    assert actual == ANSWERS[expected]
    assert state(world) == STATES[next_state or column]


# A call of each kind: to a coordinator that is shut down, that does not lead the group's partition,
# that is loading it; and for the group "".
BY_AVAILABILITY = """
call             closed     elsewhere  loading  empty_id
join_group       CLOSED     ELSEWHERE  LOADING  BADID
sync_group       CLOSED     ELSEWHERE  REJOIN   BADID
heartbeat        CLOSED     ELSEWHERE  ok       BADID
leave_group      CLOSED     ELSEWHERE  LOADING  BADID
commit_offsets   CLOSED     ELSEWHERE  LOADING  ok
fetch_offsets    CLOSED     ELSEWHERE  LOADING  ok
delete_offsets   CLOSED     ELSEWHERE  LOADING  BADID
describe_groups  CLOSED     ELSEWHERE  LOADING  ok
list_groups      CLOSED     ok         LOADING  ok
delete_groups    CLOSED     ELSEWHERE  LOADING  NOGROUP
"""


def a_request(call: str, group_id: str) -> Any:
    requests: dict[str, Callable[[], Any]] = {
        "join_group": lambda: JoinGroup(group_id, "m", "consumer", [("r", SUBSCRIBED_T)], 10_000),
        "sync_group": lambda: SyncGroup(group_id, 1, "m"),
        "heartbeat": lambda: Heartbeat(group_id, 1, "m"),
        "leave_group": lambda: LeaveGroup(group_id, [LeavingMember("m")]),
        "commit_offsets": lambda: CommitOffsets(group_id, {T0: OffsetToCommit(1)}),
        "fetch_offsets": lambda: FetchOffsets(group_id, [T0]),
        "delete_offsets": lambda: DeleteOffsets(group_id, [T0]),
        "describe_groups": lambda: DescribeGroups([group_id]),
        "list_groups": ListGroups,
        "delete_groups": lambda: DeleteGroups([group_id]),
    }
    return requests[call]()


def shell_that_is(condition: str) -> GroupShell:
    shell = GroupShell(load=condition in ("closed", "empty_id"))
    if condition == "closed":
        shell.perform(shell.coordinator.shutdown())
    elif condition == "loading":
        shell.coordinator.start_loading(0, 1)
    return shell


@pytest.mark.parametrize(("call", "condition", "cell"), rows(BY_AVAILABILITY))
def test_every_call_is_answered_by_who_coordinates(call: str, condition: str, cell: str) -> None:
    shell = shell_that_is(condition)
    request = a_request(call, "" if condition == "empty_id" else "g")
    result = shell.ask(getattr(shell.coordinator, call), request)
    if call == "describe_groups":
        (result,) = result.groups
    assert answer(result) == ANSWERS[cell]


# The facade's own.


def test_groups_belong_to_partitions_as_in_kafka() -> None:
    coordinator = GroupShell(load=False).new_coordinator()
    coordinator.set_num_partitions(50)
    assert coordinator.partition_for("g") == partition_for_key("g", 50)
    coordinator.start_loading(1, 1)
    coordinator.set_num_partitions(50)
    with pytest.raises(AssertionError, match="groups would move"):
        coordinator.set_num_partitions(3)


def test_an_unknown_append_is_nothing() -> None:
    effects = GroupShell().coordinator.append_completed(0, 999, ErrorCode.NONE)
    assert (effects.replies, effects.appends) == ([], [])


def test_metrics_count_groups_and_offsets() -> None:
    shell = GroupShell(GroupConfig(offsets_topic_num_partitions=3))
    shell.stable_pair("one")
    shell.stable_pair("two")
    shell.commit(group_id="three")
    states = shell.coordinator.groups_by_state()
    assert states == {GroupState.STABLE: 2, GroupState.EMPTY: 1}
    assert shell.coordinator.num_offsets() == 1
