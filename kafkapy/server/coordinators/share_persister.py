"""Sends requests to the share coordinators: the leaders of `__share_group_state`, this broker or
others. While the coordinator is unavailable, requests are sent again (12 attempts in all). Kafka:
`PersisterStateManager`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import SHARE_GROUP_STATE_TOPIC
from kafkapy.coordinator.shares.messages import StateRequest, StateResult
from kafkapy.server.coordinators.share_state_codec import from_response, to_message
from kafkapy.server.interbroker.node_client import NodeUnavailable
from kafkapy.server.interbroker.node_clients import NodeClients

if TYPE_CHECKING:
    from kafkapy.metadata.cache import MetadataCache
    from kafkapy.server.coordinators.coordinator_log import CallLater
    from kafkapy.server.coordinators.share_service import ShareService


_RETRIABLE_ERRORS: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
_ATTEMPTS_MAX: Final = 12
_FIRST_DELAY_S: Final = 0.05
_DELAY_MAX_S: Final = 1.0
_REQUESTS_A_TURN: Final = 32
"""The number of requests that are sent in one turn of the event loop: some 5 ms, if this broker
stores their states."""

OnAnswer = Callable[[StateResult], None]


class _Attempt(NamedTuple):
    request: StateRequest
    on_answer: OnAnswer
    number: int


class SharePersister:
    """Fixed: this broker's id, its own coordinator, and the clients of the other brokers.
    `create_topic` starts the creation of the topic, and calls its argument when that has ended."""

    def __init__(
        self,
        broker_id: int,
        metadata: MetadataCache,
        service: ShareService,
        nodes: NodeClients,
        call_later: CallLater,
    ) -> None:
        self.create_topic: Callable[[Callable[[], None]], None] = lambda created: created()
        self._broker_id = broker_id
        self._metadata = metadata
        self._service = service
        self._nodes = nodes
        self._call_later = call_later
        self._closed = False
        self._sent = 0  # in this turn of the event loop
        self._waiting: deque[_Attempt] = deque()  # for a later turn

    def send(self, request: StateRequest, on_answer: OnAnswer) -> None:
        """Send a request, in a later turn if there are many. `on_answer` gets the result once, now
        or later. A member that has acquired records of thousands of partitions may disconnect, or
        its locks expire."""
        self._send(_Attempt(request, on_answer, 1))

    def _send(self, attempt: _Attempt) -> None:
        if self._waiting or self._sent == _REQUESTS_A_TURN:
            self._waiting.append(attempt)
        else:
            self._send_now(*attempt)

    def _end_turn(self) -> None:
        self._sent = 0
        while self._waiting and self._sent < _REQUESTS_A_TURN:
            self._send_now(*self._waiting.popleft())

    def _send_now(self, request: StateRequest, on_answer: OnAnswer, attempt: int) -> None:
        if not self._sent:
            self._call_later(0, self._end_turn)
        self._sent += 1
        ended = partial(self._on_result, request, on_answer, attempt)
        topic = self._metadata.image.topics.get(SHARE_GROUP_STATE_TOPIC)
        if topic is None:
            missing = StateResult(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            self.create_topic(lambda: ended(missing))
            return
        index = self._service.coordinator.partition_for(request.key)
        known = topic.partitions.get(index)
        leader = -1 if known is None else known.leader
        if leader == self._broker_id:
            self._service.run_internal(self._service.coordinator.handle, request, ended)
            return
        message = to_message(request)
        try:
            version = type(message).MAX_VERSION
            self._nodes.client_for(leader).call(
                message, version, lambda answer: ended(_result(answer))
            )
        except NodeUnavailable:
            ended(StateResult(ErrorCode.COORDINATOR_NOT_AVAILABLE))

    def _on_result(
        self, request: StateRequest, on_answer: OnAnswer, attempt: int, result: StateResult
    ) -> None:
        is_final = result.error not in _RETRIABLE_ERRORS or attempt == _ATTEMPTS_MAX
        if is_final or self._closed:
            on_answer(result)
            return
        delay_s = min(_FIRST_DELAY_S * 2**attempt, _DELAY_MAX_S)
        self._call_later(delay_s, lambda: self._send(_Attempt(request, on_answer, attempt + 1)))

    def close(self) -> None:
        """Stop sending requests again, and drop the connections."""
        self._closed = True
        self._nodes.close()


def _result(answer: Any) -> StateResult:
    if isinstance(answer, NodeUnavailable):
        return StateResult(ErrorCode.NETWORK_EXCEPTION)
    try:
        return from_response(answer)
    except ApiError as refusal:
        return StateResult(ErrorCode.UNKNOWN_SERVER_ERROR, refusal.message)
