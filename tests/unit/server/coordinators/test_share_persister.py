"""Requests to share coordinators: where they go, and when they are sent again."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from kafkapy.common.errors import ErrorCode
from kafkapy.common.share_state import SharePartitionKey
from kafkapy.common.topic_partition import SHARE_GROUP_STATE_TOPIC
from kafkapy.coordinator.shares.messages import ReadState, StateResult
from kafkapy.server.coordinators.share_persister import SharePersister
from kafkapy.server.interbroker.node_client import NodeUnavailable
from tests.harness.cores.consumer_shell import topic_id

KEY = SharePartitionKey("g", topic_id(1), 2)
REQUEST = ReadState(KEY, 3)


class Parts:
    """A broker 1 with one partition of the topic, which `leader` leads; nothing waits for time."""

    def __init__(self, leader: int | None) -> None:
        self.topics: dict[str, Any] = {}
        if leader is not None:
            self.lead(leader)
        self.requests: list[object] = []
        self.on_request: dict[object, Callable[[], None]] = {}
        self.local: list[Callable[[StateResult], None]] = []
        self.remote: list[Callable[[Any], None]] = []
        self.later: list[Callable[[], None]] = []
        self.turns: list[Callable[[], None]] = []
        self.results: list[StateResult] = []
        coordinator = SimpleNamespace(handle=None, partition_for=lambda key: 0)
        service = SimpleNamespace(coordinator=coordinator, run_internal=self._ask)
        nodes = SimpleNamespace(client_for=self._of, close=lambda: None)
        self.persister = SharePersister(
            1,
            SimpleNamespace(image=SimpleNamespace(topics=self.topics)),  # type: ignore[arg-type]
            service,  # type: ignore[arg-type]
            nodes,  # type: ignore[arg-type]
            self._call_later,
        )
        self.persister.send(REQUEST, self.results.append)

    def _call_later(self, delay_s: float, step: Callable[[], None]) -> Any:
        (self.later if delay_s else self.turns).append(step)

    def lead(self, leader: int, *others: int) -> None:
        leaders = enumerate((leader, *others))
        partitions = {index: SimpleNamespace(leader=each) for index, each in leaders}
        self.topics[SHARE_GROUP_STATE_TOPIC] = SimpleNamespace(partitions=partitions)

    def _ask(self, method: object, request: object, answered: Any) -> None:
        self.requests.append(request)
        self.on_request.pop(request, lambda: None)()
        self.local.append(answered)

    def _of(self, broker_id: int) -> Any:
        if broker_id == 3:
            raise NodeUnavailable("away")
        return SimpleNamespace(call=lambda message, version, answered: self.remote.append(answered))


def test_this_broker_is_asked_without_the_network() -> None:
    parts = Parts(leader=1)
    assert parts.requests == [REQUEST]
    parts.local.pop()(StateResult(start_offset=5))
    assert parts.results == [StateResult(start_offset=5)]


def test_states_of_many_share_partitions_that_are_loaded_or_released_at_once_stop_no_client() -> (
    None
):
    """10,000 were loaded, or released when their member disconnected, in one turn of 1.6 s."""
    parts = Parts(leader=1)
    wanted = [ReadState(KEY._replace(partition=index), 3) for index in range(100)]
    for request in wanted:
        parts.persister.send(request, parts.results.append)
    counts = [len(parts.requests)]
    while parts.turns:
        before = len(parts.requests)
        parts.turns.pop()()
        counts.append(len(parts.requests) - before)
    assert max(counts) <= 32
    assert parts.requests == [REQUEST, *wanted]
    parts.persister.send(REQUEST, parts.results.append)
    assert parts.requests[-1] is REQUEST, "a single one is sent at once"


def test_a_request_does_not_overtake_those_that_wait_for_their_turn() -> None:
    """A write of a share partition would be stored after the state was read again."""
    parts = Parts(leader=1)
    wanted = [ReadState(KEY._replace(partition=index), 3) for index in range(50)]
    last = ReadState(KEY._replace(partition=99), 3)
    for request in wanted:
        parts.persister.send(request, parts.results.append)

    def send_last() -> None:
        parts.persister.send(last, parts.results.append)

    parts.on_request[wanted[35]] = send_last
    parts.turns.pop()()
    assert parts.requests == [REQUEST, *wanted, last]


def test_coordinators_do_not_move_states_when_the_topic_grows() -> None:
    parts = Parts(leader=3)
    parts.lead(1, 3, 3, 3, 3)
    parts.later.pop()()
    assert len(parts.local) == 1


def test_another_broker_that_is_gone_is_followed_by_its_successor() -> None:
    parts = Parts(leader=2)
    parts.remote.pop()(NodeUnavailable("gone"))
    parts.lead(3)
    parts.later.pop()()
    parts.lead(1)
    parts.later.pop()()
    parts.local.pop()(StateResult(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    parts.later.pop()()
    assert parts.results == []
    parts.local.pop()(StateResult(ErrorCode.FENCED_LEADER_EPOCH))
    assert parts.results == [StateResult(ErrorCode.FENCED_LEADER_EPOCH)]


def test_it_gives_up_in_the_end() -> None:
    parts = Parts(leader=3)
    while parts.later:
        parts.later.pop()()
    assert [result.error for result in parts.results] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    parts = Parts(leader=1)
    parts.persister.close()
    parts.local.pop()(StateResult(ErrorCode.NOT_COORDINATOR))
    assert [result.error for result in parts.results] == [ErrorCode.NOT_COORDINATOR]


def test_the_topic_is_created_first() -> None:
    parts = Parts(leader=None)
    created: list[Callable[[], None]] = []
    parts.persister.create_topic = created.append
    parts.later.pop()()
    parts.lead(1)
    created.pop()()
    parts.later.pop()()
    assert len(parts.local) == 1
