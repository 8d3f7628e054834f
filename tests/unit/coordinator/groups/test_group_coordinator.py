"""Every call in every state, and in every state of the coordinator itself, as two tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition, partition_for_key
from kafkapy.coordinator.config import GroupConfig
from kafkapy.coordinator.groups.group import GroupState
from kafkapy.coordinator.groups.messages import (
    CommitOffsets,
    CommitOffsetsResult,
    DeleteGroups,
    DeleteOffsets,
    DescribeGroups,
    FetchOffsets,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    ListGroups,
    OffsetToCommit,
    SyncGroup,
)
from tests.harness.cores.group_shell import SUBSCRIBED_T, T0, GroupShell


class Case:
    """A group in some state that had a leader and a follower, and what is then done to it."""

    def __init__(self, state: str) -> None:
        self.shell = GroupShell()
        self.leader, self.follower = "nobody-1", "nobody-2"
        self.generation_id = 1
        getattr(self, f"_make_{state.lower()}")()
        assert self.state == state

    @property
    def state(self) -> str:
        group = self.shell.coordinator._core.registry.find("g")
        return "Dead" if group is None else group.state

    def _make_empty(self) -> None:
        self.leader, self.follower = self.shell.stable_pair()
        self.shell.leave(self.leader, self.follower)
        self.generation_id = 2

    def _make_dead(self) -> None:
        self._make_empty()
        self.shell.ask(self.shell.coordinator.delete_groups, DeleteGroups(["g"]))

    def _make_stable(self) -> None:
        self.leader, self.follower = self.shell.stable_pair()

    def _make_preparingrebalance(self) -> None:
        self._make_stable()
        self.shell.join_new()

    def _make_completingrebalance(self) -> None:
        self.leader, _ = self.shell.join_new()
        self.follower, _ = self.shell.join_new()
        self.shell.advance(6_000)

    # What is done; each gives a token, or an error at once.

    def join_new_v4(self) -> Any:
        return self.shell.join()

    def join_new_v3(self) -> Any:
        return self.shell.join(requires_known_member_id=False)

    def join_leader(self) -> Any:
        return self.shell.join(self.leader)

    def join_follower(self) -> Any:
        return self.shell.join(self.follower)

    def join_follower_changed(self) -> Any:
        return self.shell.join(self.follower, protocols=[("range", b"other")])

    def join_unknown(self) -> Any:
        return self.shell.join("stranger")

    def join_other_type(self) -> Any:
        return self.shell.join(protocol_type="connect")

    def join_other_protocol(self) -> Any:
        return self.shell.join(protocols=[("sticky", b"")])

    def join_no_protocol(self) -> Any:
        return self.shell.join(protocols=[])

    def sync_leader(self) -> Any:
        return self.shell.sync(self.leader, self.generation_id, {})

    def sync_follower(self) -> Any:
        return self.shell.sync(self.follower, self.generation_id)

    def sync_old_generation(self) -> Any:
        return self.shell.sync(self.follower, self.generation_id - 1)

    def sync_unknown(self) -> Any:
        return self.shell.sync("stranger", self.generation_id)

    def sync_other_protocol(self) -> Any:
        return self.shell.sync(self.follower, self.generation_id, protocol_name="sticky")

    def sync_other_type(self) -> Any:
        return self.shell.sync(self.follower, self.generation_id, protocol_type="connect")

    def heartbeat(self) -> Any:
        return self.shell.heartbeat(self.follower, self.generation_id)

    def heartbeat_old_generation(self) -> Any:
        return self.shell.heartbeat(self.follower, self.generation_id - 1)

    def heartbeat_unknown(self) -> Any:
        return self.shell.heartbeat("stranger", self.generation_id)

    def leave_leader(self) -> Any:
        return self.shell.leave(self.leader)[0]

    def leave_unknown(self) -> Any:
        return self.shell.leave("stranger")[0]

    def commit_member(self) -> Any:
        member = self.follower
        return self.shell.commit(generation_id=self.generation_id, member_id=member)

    def commit_old_generation(self) -> Any:
        return self.shell.commit(generation_id=0, member_id=self.follower)

    def commit_unknown(self) -> Any:
        return self.shell.commit(generation_id=self.generation_id, member_id="stranger")

    def commit_no_member(self) -> Any:
        return self.shell.commit()

    def delete_offsets_used(self) -> Any:
        return self._delete_offsets(T0)

    def delete_offsets_unused(self) -> Any:
        return self._delete_offsets(TopicPartition("other", 0))

    def _delete_offsets(self, partition: TopicPartition) -> Any:
        request = DeleteOffsets("g", [partition])
        result = self.shell.ask(self.shell.coordinator.delete_offsets, request)
        return result.error or result.errors[partition]

    def delete_group(self) -> Any:
        result = self.shell.ask(self.shell.coordinator.delete_groups, DeleteGroups(["g"]))
        return result.errors["g"]

    def session_of_follower_over(self) -> Any:
        core = self.shell.coordinator._core
        group = core.registry.find("g")
        if group is not None and self.follower in group.members:
            self.shell.advance(9_999)
            self.shell.heartbeat(self.leader, self.generation_id)
            self.shell.advance(1)
            assert self.follower not in group.members
        return ErrorCode.NONE

    def unload(self) -> Any:
        self.shell.perform(self.shell.coordinator.unload(0))
        return ErrorCode.NONE


# event: answer in each state; `>` and the next state's letter if it is another.
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
event                     E        P        C        S        D
join_new_v4               ID       ID       ID       ID       ID>E
join_new_v3               waits>P  waits    waits>P  waits>P  waits>P
join_leader               WHO      waits    ok       waits>P  WHO
join_follower             WHO      waits    ok       ok       WHO
join_follower_changed     WHO      waits    waits>P  waits>P  WHO
join_unknown              WHO      WHO      WHO      WHO      WHO
join_other_type           ID       PROTO    PROTO    PROTO    ID>E
join_other_protocol       ID       PROTO    PROTO    PROTO    ID>E
join_no_protocol          PROTO    PROTO    PROTO    PROTO    PROTO>E
sync_leader               WHO      REJOIN   ok>S     ok       WHO
sync_follower             WHO      REJOIN   waits    ok       WHO
sync_old_generation       WHO      OLD      OLD      OLD      WHO
sync_unknown              WHO      WHO      WHO      WHO      WHO
sync_other_protocol       WHO      PROTO    PROTO    PROTO    WHO
sync_other_type           WHO      PROTO    PROTO    PROTO    WHO
heartbeat                 WHO      REJOIN   ok       ok       WHO
heartbeat_old_generation  WHO      OLD      OLD      OLD      WHO
heartbeat_unknown         WHO      WHO      WHO      WHO      WHO
leave_leader              WHO      ok       ok>P     ok>P     WHO
leave_unknown             WHO      WHO      WHO      WHO      WHO
commit_member             WHO      ok       REJOIN   ok       OLD
commit_old_generation     WHO      OLD      OLD      OLD      OLD
commit_unknown            WHO      WHO      WHO      WHO      OLD
commit_no_member          ok       WHO      WHO      WHO      ok>E
delete_offsets_used       ok>D     USED     USED     USED     NOGROUP
delete_offsets_unused     ok>D     ok       ok       ok       NOGROUP
delete_group              ok>D     BUSY     BUSY     BUSY     NOGROUP
session_of_follower_over  ok       ok       ok>P     ok>P     ok
unload                    ok>D     ok>D     ok>D     ok>D     ok
"""


def rows(table: str) -> list[tuple[str, str, str]]:
    """(row name, column name, cell) of a table in text."""
    head, *lines = [line.split() for line in table.strip().splitlines()]
    assert all(len(line) == len(head) for line in lines)
    return [(line[0], *cell) for line in lines for cell in zip(head[1:], line[1:], strict=True)]


def answer(shell: GroupShell, outcome: Any) -> str:
    """The name of the error that a token's reply, or an outcome, is."""
    if isinstance(outcome, ErrorCode):
        return outcome.name
    if outcome not in shell.replies:
        return "waits"
    result = shell.replies[outcome]
    if isinstance(result, CommitOffsetsResult):
        (error,) = result.errors.values()
        return error.name
    return str(result.error.name)


@pytest.mark.parametrize(("event", "state", "cell"), rows(BY_STATE))
def test_every_event_in_every_state(event: str, state: str, cell: str) -> None:
    case = Case(STATES[state])
    expected, _, next_state = cell.partition(">")
    outcome = getattr(case, event)()
    assert answer(case.shell, outcome) == ANSWERS[expected]
    assert case.state == STATES[next_state or state]


def test_the_table_is_complete() -> None:
    events = {name for name in vars(Case) if not name.startswith("_")} - {"state"}
    assert {event for event, _, _ in rows(BY_STATE)} == events


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
    if call in ("commit_offsets", "delete_groups"):
        (error,) = result.errors.values()
    else:
        error = result.error
    assert error.name == ANSWERS[cell]


# The facade's own.


def test_groups_belong_to_partitions_as_in_kafka() -> None:
    coordinator = GroupShell(load=False).new_coordinator()
    coordinator.set_num_partitions(50)
    assert coordinator.partition_for("g") == partition_for_key("g", 50)
    coordinator.start_loading(1, 1)
    coordinator.set_num_partitions(50)
    with pytest.raises(AssertionError, match="groups would move"):
        coordinator.set_num_partitions(3)


def test_a_forgotten_request_still_happens() -> None:
    shell = GroupShell()
    member_id, token = shell.join_new()
    shell.coordinator.forget_token(token)
    assert shell.coordinator.waiting == 0
    shell.advance(3_000)
    assert token not in shell.replies
    assert shell.heartbeat(member_id, 1) is ErrorCode.NONE


def test_nothing_is_due_in_an_idle_coordinator() -> None:
    shell = GroupShell()
    assert shell.coordinator.next_deadline_ms() is None
    shell.commit()
    assert shell.coordinator.next_deadline_ms() is None
    assert shell.coordinator.on_time(10**9).replies == []


def test_the_next_deadline_is_told() -> None:
    shell = GroupShell()
    shell.stable_pair()
    assert shell.coordinator.next_deadline_ms() == shell.now_ms + 10_000


def test_an_unknown_append_is_nothing() -> None:
    effects = GroupShell().coordinator.append_completed(0, 999, ErrorCode.NONE)
    assert (effects.replies, effects.appends) == ([], [])


def test_shutdown_answers_who_waits() -> None:
    shell = GroupShell()
    _, joining = shell.join_new()
    shell.perform(shell.coordinator.shutdown())
    assert shell.replies[joining].error is ErrorCode.NOT_COORDINATOR
    assert shell.coordinator.next_deadline_ms() is None


def test_metrics_count_groups_and_offsets() -> None:
    shell = GroupShell(GroupConfig(offsets_topic_num_partitions=3))
    shell.stable_pair("one")
    shell.stable_pair("two")
    shell.commit(group_id="three")
    states = shell.coordinator.groups_by_state()
    assert states == {GroupState.STABLE: 2, GroupState.EMPTY: 1}
    assert shell.coordinator.num_offsets() == 1
