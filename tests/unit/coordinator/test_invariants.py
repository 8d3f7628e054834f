"""Any calls in any order, appends that linger or fail, and time: what must always hold of groups.

Replies come exactly once for each token; a generation only grows; members, leader, static members
and counts agree; and a coordinator that replays the log knows what this one knows.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.config import GroupConfig
from kafkapy.coordinator.groups.group import (
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    Group,
)
from kafkapy.coordinator.groups.group_coordinator import GroupCoordinator
from kafkapy.coordinator.groups.messages import DeleteGroups, LeavingMember
from kafkapy.coordinator.groups.timers import TimerKey, TimerKind
from tests.harness.cores.group_shell import T0, T1, GroupShell, OffsetToCommit

GROUPS = st.sampled_from(["g", "h"])
INSTANCES = st.sampled_from([None, None, "i1", "i2"])
PROTOCOLS = st.sampled_from(
    [
        [("range", b"1")],
        [("range", b"2"), ("sticky", b"3")],
        [("sticky", b"4"), ("range", b"5")],
    ]
)
FAILURES = st.sampled_from([ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.MESSAGE_TOO_LARGE])
CONFIG = GroupConfig(offsets_topic_num_partitions=1, group_max_size=4, offsets_retention_minutes=1)


class Groups(RuleBasedStateMachine):
    """Two groups, whatever happens to them."""

    def __init__(self) -> None:
        super().__init__()
        self.shell = GroupShell(CONFIG)
        self.shell.hold()
        self.tokens: list[Any] = []
        self.ids: list[str] = ["stranger"]
        self.generations: dict[Group, int] = {}
        self.lost = False
        self.shell.on_reply = self.remember

    def remember(self, _token: Any, result: Any) -> None:
        member_id = getattr(result, "member_id", "")
        if member_id and member_id not in self.ids:
            self.ids.append(member_id)

    def an_id(self, data: st.DataObject) -> str:
        recent = self.ids[-6:]
        member_id: str = data.draw(st.sampled_from(recent))
        return member_id

    def generation_of(self, group_id: str) -> int:
        group = self.shell.coordinator._core.registry.find(group_id)
        return 0 if group is None else group.generation_id

    @initialize(instances=st.lists(INSTANCES, max_size=3))
    def a_stable_group(self, instances: list[str | None]) -> None:
        for instance in instances:
            self.join_new("g", instance, [("range", b"1")], old=True)
        self.settle("g")

    @rule(group_id=GROUPS, instance=INSTANCES, protocols=PROTOCOLS, old=st.booleans())
    def join_new(self, group_id: str, instance: Any, protocols: Any, old: bool) -> None:
        fields = {"group_instance_id": instance, "protocols": protocols}
        known = not old
        skip = not old
        token = self.shell.join(
            "", group_id, requires_known_member_id=known, supports_skip_assignment=skip, **fields
        )
        self.tokens.append(token)

    @rule(data=st.data(), group_id=GROUPS, protocols=PROTOCOLS)
    def join(self, data: st.DataObject, group_id: str, protocols: Any) -> None:
        self.tokens.append(self.shell.join(self.an_id(data), group_id, protocols=protocols))

    @rule(data=st.data(), group_id=GROUPS)
    def everyone_rejoins(self, data: st.DataObject, group_id: str) -> None:
        group = self.shell.coordinator._core.registry.find(group_id)
        for member in list(group.members.values()) if group else []:
            protocols = data.draw(PROTOCOLS)
            token = self.shell.join(member.member_id, group_id, protocols=protocols)
            self.tokens.append(token)

    @rule(data=st.data(), group_id=GROUPS)
    def sync(self, data: st.DataObject, group_id: str) -> None:
        generation_id = self.generation_of(group_id)
        token = self.shell.sync(self.an_id(data), generation_id, group_id=group_id)
        self.tokens.append(token)

    @rule(group_id=GROUPS)
    def everyone_syncs(self, group_id: str) -> None:
        group = self.shell.coordinator._core.registry.find(group_id)
        for member_id in list(group.members) if group else []:
            assignments = {m: f"for {m}".encode() for m in group.members} if group else {}
            generation_id = self.generation_of(group_id)
            token = self.shell.sync(member_id, generation_id, assignments, group_id=group_id)
            self.tokens.append(token)

    @rule(group_id=GROUPS)
    def settle(self, group_id: str) -> None:
        """All that the members themselves can do to become Stable."""
        group = self.shell.coordinator._core.registry.find(group_id)
        for member in list(group.members.values()) if group else []:
            if group and group.state is PREPARING_REBALANCE:
                token = self.shell.join(member.member_id, group_id, protocols=member.protocols)
                self.tokens.append(token)
        self.shell.advance(6_000)
        self.everyone_syncs(group_id)
        self.appends_are_done()

    @rule(data=st.data(), group_id=GROUPS)
    def heartbeat(self, data: st.DataObject, group_id: str) -> None:
        self.shell.heartbeat(self.an_id(data), self.generation_of(group_id), group_id=group_id)

    @rule(data=st.data(), group_id=GROUPS, instance=INSTANCES)
    def leave(self, data: st.DataObject, group_id: str, instance: str | None) -> None:
        member_id = "" if instance else self.an_id(data)
        self.shell.leave(LeavingMember(member_id, instance), group_id=group_id)

    @rule(data=st.data(), group_id=GROUPS, offset=st.integers(0, 9), alone=st.booleans())
    def commit(self, data: st.DataObject, group_id: str, offset: int, alone: bool) -> None:
        partition = data.draw(st.sampled_from([T0, T1]))
        fields: dict[str, Any] = {"offsets": {partition: OffsetToCommit(offset)}}
        if not alone:
            fields |= {"member_id": self.an_id(data)}
            fields |= {"generation_id": self.generation_of(group_id)}
        self.tokens.append(self.shell.commit(group_id=group_id, **fields))

    @rule(group_id=GROUPS)
    def delete_group(self, group_id: str) -> None:
        token = self.shell.call(self.shell.coordinator.delete_groups, DeleteGroups([group_id]))
        self.tokens.append(token)

    @rule()
    def expire(self) -> None:
        self.shell.expire_offsets()

    @rule(ms=st.sampled_from([1, 3_000, 9_999, 60_000]))
    def advance(self, ms: int) -> None:
        self.shell.advance(ms)

    @rule()
    def forget(self) -> None:
        if self.tokens:
            self.shell.coordinator.drop_token(self.tokens[-1])
            if self.tokens[-1] not in self.shell.replies:
                self.tokens.pop()

    @rule()
    def appends_are_done(self) -> None:
        self.shell.release()
        self.shell.hold()

    @precondition(lambda self: self.shell.held)
    @rule(error=FAILURES)
    def appends_fail(self, error: ErrorCode) -> None:
        # A tombstone that fails is written again by the next coordinator; here it is simply done.
        held, self.shell.held = self.shell.held, []
        for append in held or []:
            done = append.required_acks == 0
            self.lost = self.lost or not done
            self.shell.complete(append, ErrorCode.NONE if done else error)

    @rule()
    def failover(self) -> None:
        self.shell.perform(self.shell.coordinator.unload(0))
        self.shell.release(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self.shell.hold()
        assert not self.shell.coordinator._core.outbox._token_by_ticket
        self.shell.coordinator = self.shell.replayed()
        self.lost = False

    @invariant()
    def groups_are_sound(self) -> None:
        check_timers(self.shell.coordinator)
        for group in self.shell.coordinator._core.registry.loaded_groups():
            check(group)
            assert group.generation_id >= self.generations.get(group, 0)
            self.generations[group] = group.generation_id

    @invariant()
    def the_log_tells_the_same(self) -> None:
        if not self.shell.held and not self.lost:
            expected = known(self.shell.coordinator, settled=True)
            replayed = known(self.shell.replayed(), settled=False)
            for name, group in expected.items():
                assert replayed.get(name) == group

    def teardown(self) -> None:
        for _ in range(20):
            self.shell.release()
            self.shell.advance(400_000)
        assert not self.shell.coordinator._core.outbox._token_by_ticket
        assert all(token in self.shell.replies for token in self.tokens)


def check(group: Group) -> None:
    """Invariants of a group that hold between any two calls."""
    members = group.members
    assert (group.leader_id in members) == bool(members)
    assert group.static_members == {
        m.group_instance_id: m.member_id for m in members.values() if m.is_static
    }
    assert all(member_id == m.member_id for member_id, m in members.items())
    names = [name for m in members.values() for name in m.protocol_names]
    assert dict(group.protocol_counts) == {name: names.count(name) for name in names}
    assert not members or len(members) in group.protocol_counts.values()
    assert group.joining.keys() <= members.keys()
    assert group.syncing.keys() <= members.keys()
    assert group.pending_sync <= members.keys()
    assert not group.pending_members & members.keys()
    assert bool(members) or group.state in (EMPTY, PREPARING_REBALANCE)
    assert not group.syncing or group.state is COMPLETING_REBALANCE
    if group.state is EMPTY:
        assert not members
    if group.state in (STABLE, COMPLETING_REBALANCE):
        assert group.protocol_name is not None
        assert group.protocol_counts[group.protocol_name] == len(members)


def check_timers(coordinator: GroupCoordinator) -> None:
    """Each deadline is for something that is there, and what must end has one."""
    core = coordinator._core
    for kind, group_id, member_id in core.timers._deadlines:
        group = core.registry.find(group_id)
        assert group is not None
        assert {
            TimerKind.JOIN: group.state is PREPARING_REBALANCE,
            TimerKind.SYNC: bool(group.pending_sync),
            TimerKind.SESSION: member_id in group.members,
            TimerKind.PENDING: member_id in group.pending_members,
        }[kind]
    for group in core.registry.loaded_groups():
        name = group.group_id
        if group.state is PREPARING_REBALANCE:
            assert core.timers.deadline_ms(TimerKey(TimerKind.JOIN, name)) is not None
        for member_id in group.members:
            waits = member_id in group.joining or member_id in group.syncing
            key = TimerKey(TimerKind.SESSION, name, member_id)
            assert waits or core.timers.deadline_ms(key) is not None


def known(coordinator: GroupCoordinator, *, settled: bool) -> dict[str, Any]:
    """Groups as the log should hold them; `settled`: only those that have written all."""
    groups = {}
    for group in coordinator._core.registry.loaded_groups():
        rebalancing = group.state not in (EMPTY, STABLE)
        if settled and (rebalancing or group.is_blank):
            continue
        assignments = {m.member_id: m.assignment for m in group.members.values()}
        value = group.value(assignments)._replace(state_timestamp_ms=None)
        if not group.generation_id:
            value = value._replace(protocol_type="")
        offsets = {p: c.value for p, c in group.offsets.committed.items()}
        groups[group.group_id] = (group.state, value, offsets)
    return groups


TestGroups = Groups.TestCase
TestGroups.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)
