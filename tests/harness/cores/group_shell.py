"""A group coordinator with a fake shell: a clock, a log, and the replies of the coordinator."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.config import GroupConfig
from kafkapy.coordinator.effects import REPLICATED, Append, Effects
from kafkapy.coordinator.groups.group import Group
from kafkapy.coordinator.groups.group_coordinator import GroupCoordinator
from kafkapy.coordinator.groups.group_offsets import NO_PRODUCER_ID, UNKNOWN_LOG_OFFSET
from kafkapy.coordinator.groups.messages import (
    CommitOffsets,
    Heartbeat,
    JoinGroup,
    LeaveGroup,
    LeavingMember,
    OffsetToCommit,
    SyncGroup,
)
from kafkapy.record.builder import RecordData, build_batch
from tests.harness.cores.ports import CountingRandom, ManualClock

WALL_MS = 1_700_000_000_000
SESSION_MS = 10_000
REBALANCE_MS = 60_000
T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
SUBSCRIBED_T = bytes.fromhex("0000 00000001 0001 74 ffffffff")
"""A consumer subscription v0 to the topic `t`."""


def replay(
    coordinator: GroupCoordinator,
    partition: int,
    offset: int,
    record: RecordData,
    producer_id: int = NO_PRODUCER_ID,
) -> None:
    """Load one record, in a batch of its own, which is transactional if it has a producer id."""
    batch = build_batch(
        [record],
        base_offset=offset,
        producer_id=producer_id,
        is_transactional=producer_id != NO_PRODUCER_ID,
    )
    coordinator.replay_batches(partition, batch)


class GroupShell:
    """Completes every append at once, unless `held`; stores each reply under its token."""

    def __init__(self, config: GroupConfig | None = None, *, load: bool = True) -> None:
        self.clock = ManualClock(0, WALL_MS)
        self.config = config or GroupConfig(offsets_topic_num_partitions=1)
        self.random = CountingRandom(1)
        self.log: list[tuple[int, RecordData]] = []
        self.appends: list[Append] = []
        self.held: list[Append] | None = None
        self.append_error = ErrorCode.NONE
        self.replies: dict[Any, Any] = {}
        self.on_reply: Callable[[Any, Any], None] = lambda token, result: None
        self.on_append: Callable[[Append], None] = lambda append: None
        self._tokens = 0
        self.coordinator = self.new_coordinator()
        if load:
            for partition in range(self.config.offsets_topic_num_partitions):
                assert self.coordinator.start_loading(partition, leader_epoch=5)
                self.perform(self.coordinator.finish_loading(partition, self.now_ms))

    def new_coordinator(self) -> GroupCoordinator:
        logger = logging.getLogger("tests.group_shell")
        return GroupCoordinator(self.config, self.random, self.clock, logger=logger)

    @property
    def now_ms(self) -> int:
        return self.clock.now_ms

    # Effects.

    def perform(self, effects: Effects) -> None:
        for token, result in effects.replies:
            assert token not in self.replies, f"{token} is answered twice"
            self.replies[token] = result
            self.on_reply(token, result)
        for append in effects.appends:
            self.appends.append(append)
            self.on_append(append)
            if self.held is None:
                self.complete(append, self.append_error)
            else:
                self.held.append(append)

    def complete(self, append: Append, error: ErrorCode = ErrorCode.NONE) -> None:
        is_in_log = error is ErrorCode.REQUEST_TIMED_OUT or error in REPLICATED
        base_offset = len(self.log) if is_in_log else UNKNOWN_LOG_OFFSET
        if is_in_log:
            self.log += ((append.partition, record) for record in append.records)
        done = self.coordinator.append_completed
        self.perform(done(self.now_ms, append.append_id, error, base_offset))

    def hold(self) -> None:
        self.held = []

    def release(self, error: ErrorCode = ErrorCode.NONE) -> None:
        held, self.held = self.held or [], None
        for append in held:
            self.complete(append, error)

    def advance(self, ms: int) -> None:
        """Advance the clock, stopping at each deadline."""
        end_ms = self.now_ms + ms
        while (due_ms := self.coordinator.next_deadline_ms()) is not None and due_ms <= end_ms:
            self.clock.now_ms = max(due_ms, self.now_ms)
            self.perform(self.coordinator.on_time(self.now_ms))
        self.clock.now_ms = end_ms

    def expire_offsets(self, time_ms: int | None = None) -> None:
        """All steps of one check of the retention."""
        at_ms = self.clock.time_ms() if time_ms is None else time_ms
        for effects in self.coordinator.expire_offsets(at_ms):
            self.perform(effects)

    # Requests.

    def call(self, method: Callable[[int, Any, Any], Effects], request: Any) -> Any:
        """Send a request. Returns its token, under which `replies` gets the reply."""
        self._tokens += 1
        token = f"token-{self._tokens}"
        self.perform(method(self.now_ms, token, request))
        return token

    def ask(self, method: Callable[[int, Any, Any], Effects], request: Any) -> Any:
        """Send a request. Returns its reply, which must come at once."""
        return self.replies[self.call(method, request)]

    def join(self, member_id: str = "", group_id: str = "g", **fields: Any) -> Any:
        request = JoinGroup(
            **{
                "group_id": group_id,
                "member_id": member_id,
                "protocol_type": "consumer",
                "protocols": [("range", SUBSCRIBED_T)],
                "session_timeout_ms": SESSION_MS,
                "rebalance_timeout_ms": REBALANCE_MS,
                "client_id": "client",
                "client_host": "/127.0.0.1",
                **fields,
            }
        )
        return self.call(self.coordinator.join_group, request)

    def join_new(self, group_id: str = "g", **fields: Any) -> tuple[str, Any]:
        """(member id, token) of a new dynamic member, through MEMBER_ID_REQUIRED."""
        required = self.replies[self.join(group_id=group_id, **fields)]
        assert required.error is ErrorCode.MEMBER_ID_REQUIRED
        return required.member_id, self.join(required.member_id, group_id, **fields)

    def sync(
        self,
        member_id: str,
        generation_id: int,
        assignments: dict[str, bytes] | None = None,
        **fields: Any,
    ) -> Any:
        group_id = fields.pop("group_id", "g")
        request = SyncGroup(
            group_id, generation_id, member_id, assignments=assignments or {}, **fields
        )
        return self.call(self.coordinator.sync_group, request)

    def heartbeat(self, member_id: str, generation_id: int, **fields: Any) -> ErrorCode:
        request = Heartbeat(fields.pop("group_id", "g"), generation_id, member_id, **fields)
        error = self.ask(self.coordinator.heartbeat, request).error
        assert isinstance(error, ErrorCode)
        return error

    def leave(self, *members: str | LeavingMember, group_id: str = "g") -> list[ErrorCode]:
        leaving = [LeavingMember(m) if isinstance(m, str) else m for m in members]
        result = self.ask(self.coordinator.leave_group, LeaveGroup(group_id, leaving))
        assert result.error is ErrorCode.NONE
        assert [row for row, _ in result.members] == leaving
        return [error for _, error in result.members]

    def commit(self, offset: int = 1, group_id: str = "g", **fields: Any) -> Any:
        offsets = fields.pop("offsets", {T0: OffsetToCommit(offset)})
        request = CommitOffsets(group_id, offsets, **fields)
        return self.call(self.coordinator.commit_offsets, request)

    # States.

    def stable_pair(self, group_id: str = "g", **fields: Any) -> tuple[str, str]:
        """(leader, follower) of a new Stable group in generation 1."""
        leader, leads = self.join_new(group_id, **fields)
        follower, _ = self.join_new(group_id, **fields)
        self.advance(3_000)
        self.advance(3_000)
        assert self.replies[leads].leader == leader
        assignments = {leader: b"L", follower: b"F"}
        self.sync(follower, 1, group_id=group_id)
        self.sync(leader, 1, assignments, group_id=group_id)
        return leader, follower

    def group(self, group_id: str = "g") -> Group:
        group = self.coordinator._core.registry.find(group_id)
        assert group is not None
        return group

    def replayed(self, leader_epoch: int = 6) -> GroupCoordinator:
        """Another coordinator that loaded this one's log."""
        other = self.new_coordinator()
        self.load(other, leader_epoch)
        return other

    def load(self, coordinator: GroupCoordinator, leader_epoch: int) -> None:
        """Load the whole log into `coordinator`."""
        for partition in range(self.config.offsets_topic_num_partitions):
            coordinator.start_loading(partition, leader_epoch)
            for offset, (index, record) in enumerate(self.log):
                if index == partition:
                    replay(coordinator, partition, offset, record)
            coordinator.finish_loading(partition, self.now_ms)
