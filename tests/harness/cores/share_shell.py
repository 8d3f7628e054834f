"""A group coordinator with members of a share group, and a fake share coordinator."""

from __future__ import annotations

from kafkapy.common.errors import ErrorCode
from kafkapy.coordinator.groups.consumer.assignment import (
    EMPTY_ASSIGNMENT,
    Assignment,
    partitions_of,
)
from kafkapy.coordinator.groups.consumer.messages import ConsumerHeartbeatResult
from kafkapy.coordinator.groups.share.messages import ShareHeartbeat, StateRequest
from kafkapy.coordinator.groups.share.share_group import ShareGroup
from tests.harness.cores.consumer_shell import ConsumerShell


class ShareShell(ConsumerShell):
    """A shell with one topic `t` of four partitions. `begin` initializes share partitions."""

    def member(self, member_id: str, *topics: str) -> ShareMember:
        """A member that has joined."""
        member = ShareMember(self, member_id, topics or ("t",))
        member.beat()
        return member

    def requests(self) -> list[StateRequest]:
        """The requests for the share coordinator since the last call."""
        return self.coordinator.take_state_requests()

    def begin(self, error: ErrorCode = ErrorCode.NONE, known_epoch: int = 0) -> None:
        """Answer the requests as the share coordinator."""
        for request in self.requests():
            done = self.coordinator.share_states_initialized
            self.perform(done(self.now_ms, request, error, known_epoch))

    @property
    def shares(self) -> ShareGroup:
        group = self.group().consumer
        assert isinstance(group, ShareGroup)
        return group


class ShareMember:
    """One client of a share group."""

    def __init__(self, shell: ShareShell, member_id: str, topics: tuple[str, ...]) -> None:
        self.shell = shell
        self.member_id = member_id
        self.topics = topics
        self.epoch = 0
        self.assigned: Assignment = EMPTY_ASSIGNMENT

    def beat(self, epoch: int | None = None) -> ConsumerHeartbeatResult:
        """Send a heartbeat, and apply the answer."""
        request = ShareHeartbeat(
            "g", self.member_id, self.epoch if epoch is None else epoch, client_id="c"
        )
        if request.member_epoch == 0:
            request.subscribed_names = self.topics
        result = self.shell.ask(self.shell.coordinator.share_heartbeat, request)
        assert isinstance(result, ConsumerHeartbeatResult)
        if result.error is ErrorCode.NONE:
            self.epoch = result.member_epoch
            if result.assignment is not None:
                self.assigned = result.assignment
        return result

    @property
    def partitions(self) -> set[tuple[str | None, int]]:
        """The partitions that it has, by name."""
        name_of = self.shell.topics.name_of
        return {(name_of(t), index) for t, index in partitions_of(self.assigned)}
