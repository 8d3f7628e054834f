"""Runs a coordinator: responses to requests, appends to its topic, timers, loading.

The coordinator makes all decisions. The service appends its records to a local partition, usually
with acks=all, and reports back when they are replicated. When this broker starts to lead a
partition, the service replays the log before the partition is served.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from kafkapy.common.errors import ErrorCode
from kafkapy.common.ports import Clock
from kafkapy.coordinator.effects import Append, Effects, Token
from kafkapy.record.batch_header import Buffer
from kafkapy.replication.partition import Partition
from kafkapy.server.coordinators.coordinator_log import CallLater, CoordinatorLog
from kafkapy.server.counts.request_times import RequestTimes
from kafkapy.server.requests.outcomes import Pending, Work

if TYPE_CHECKING:
    from kafkapy.protocol.schema import Message
    from kafkapy.zk.stores.store import ZkStore

E = TypeVar("E", bound=Effects[Any])
R = TypeVar("R")
M = TypeVar("M", bound="Message")


E_co = TypeVar("E_co", bound=Effects[Any], covariant=True)


class Coordinator(Protocol[E_co]):
    """The interface of a coordinator to its service."""

    def set_num_partitions(self, num_partitions: int) -> None: ...
    def start_loading(self, partition: int, leader_epoch: int) -> bool: ...
    def replay_batches(self, partition: int, records: Buffer) -> None: ...
    def finish_loading(self, partition: int, now_ms: int) -> E_co: ...
    def unload(self, partition: int, leader_epoch: int | None = None) -> E_co: ...
    def append_completed(
        self, now_ms: int, append_id: int, error: ErrorCode, base_offset: int
    ) -> E_co: ...
    def next_deadline_ms(self) -> int | None: ...
    def on_time(self, now_ms: int) -> E_co: ...
    def drop_token(self, token: Token) -> None: ...
    def shutdown(self) -> E_co: ...


C = TypeVar("C", bound=Coordinator[Any])


class CoordinatorService(Generic[C, E]):
    """Drives one coordinator on the event loop.

    `call` runs a request through it; `on_leadership` follows the partitions of its topic.
    """

    def __init__(
        self, coordinator: C, log: CoordinatorLog, clock: Clock, call_later: CallLater
    ) -> None:
        self.coordinator = coordinator
        self._log = log
        self._clock = clock
        self._call_later = call_later
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due_ms = 0

    def call(
        self,
        method: Callable[[int, Any, Any], E],
        request: Any,
        to_response: Callable[[Any], M | Work[M]],
    ) -> M | Pending[M]:
        """Run one request. Returns its response, or a `Pending` if it must wait. A large response
        may be made in slices."""
        token: AnswerToken[M] = AnswerToken(to_response)
        token.on_abandon = lambda: self.coordinator.drop_token(token)
        self._perform(method(self._clock.monotonic_ms(), token, request))
        return token.response if token.done else token

    def call_now(
        self,
        method: Callable[[int, Any, Any], E],
        request: Any,
        to_response: Callable[[Any], R],
    ) -> R:
        """Run a request that never waits, and return its response."""
        token: AnswerToken[R] = AnswerToken(to_response)
        self._perform(method(self._clock.monotonic_ms(), token, request))
        assert token.done, "the request waits"
        return token.response

    def run_internal(
        self, method: Callable[[int, Any, Any], E], request: Any, on_answer: Callable[[Any], None]
    ) -> None:
        """Run a request of this broker. `on_answer` is called with the result, now or later."""
        token: AnswerToken[Any] = AnswerToken(lambda result: result)
        token.when_complete(on_answer)
        self._perform(method(self._clock.monotonic_ms(), token, request))

    def run(self, step: Callable[[int], E]) -> None:
        """Run a step without a client's request, and perform its effects."""
        self._perform(step(self._clock.monotonic_ms()))

    async def start(self, store: ZkStore) -> None:
        """Read the partition count of the topic before any of them is led. The config applies only
        to a topic that does not exist yet."""
        topic = await store.topics.get(self._log.topic)
        if topic is not None:
            self.coordinator.set_num_partitions(len(topic.assignment))

    @property
    def load_times(self) -> RequestTimes:
        """Durations of the replays of partitions."""
        return self._log.load_times

    # leadership

    def on_leadership(self, partition: Partition, leads: bool) -> None:
        """Load or unload a partition, if it is one of the topic."""
        topic, index = partition.topic_partition
        if topic != self._log.topic:
            return
        if leads:
            if self.coordinator.start_loading(index, partition.leader_epoch):
                self._log.load(partition, self.coordinator.replay_batches, self._finish_loading)
        else:
            self._log.cancel_load(index)
            self.run(lambda now_ms: self.coordinator.unload(index, partition.leader_epoch))

    def _finish_loading(self, partition: Partition, _end_offset: int) -> None:
        index = partition.topic_partition.partition
        self.run(lambda now_ms: self.coordinator.finish_loading(index, now_ms))

    # effects

    def _perform(self, effects: E) -> None:
        for token, result in effects.replies:
            token.answer(result)  # type: ignore[attr-defined]
        for append in effects.appends:
            self._log.append(append, partial(self._appended, append))
        self._set_timer()

    def _appended(self, append: Append, error: ErrorCode, base_offset: int) -> None:
        now_ms = self._clock.monotonic_ms()
        completed = self.coordinator.append_completed
        self._perform(completed(now_ms, append.append_id, error, base_offset))

    # timers

    def _set_timer(self) -> None:
        due_ms = self.coordinator.next_deadline_ms()
        if due_ms is None or (self._timer is not None and self._timer_due_ms <= due_ms):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due_ms = due_ms
        delay_ms = max(0, due_ms - self._clock.monotonic_ms())
        self._timer = self._call_later(delay_ms / 1000, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.run(self.coordinator.on_time)

    def stop(self) -> None:
        """Answer waiting requests with NOT_COORDINATOR. Later requests are not served."""
        self._log.stop()
        self._perform(self.coordinator.shutdown())
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class AnswerToken(Pending[R]):
    """A request of a coordinator: completes with the response made from its result."""

    __slots__ = ("_to_response",)

    def __init__(self, to_response: Callable[[Any], R | Work[R]]) -> None:
        super().__init__()
        self._to_response = to_response

    def answer(self, result: Any) -> None:
        self.complete(self._to_response(result))
