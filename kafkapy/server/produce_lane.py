"""The short way of a producer's requests: no decoding, no handler, no encoding.

Hot file. A request of the shape that its connection's last ones had goes straight to its partition,
if that leads. Whatever is not plain - another request, a partition that is not there or refuses, a
client quota on this broker - takes the long way by `Dispatcher`, which alone decides what a refusal
looks like: a refused append has changed nothing, so it may be tried again. With acks=all the answer
waits in the purgatory as on the long way. Per connection: the shape, and the topic produced to
last.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import INTERNAL_TOPICS
from kafkapy.protocol.headers import RequestHeader
from kafkapy.protocol.messages.produce import ProduceRequest
from kafkapy.protocol.produce_shape import ProduceShape
from kafkapy.replication.delayed_produce import DelayedProduce, ProduceWait
from kafkapy.server.request import NO_RESPONSE, NoResponse, Pending
from kafkapy.storage.log_append import LogAppendInfo

if TYPE_CHECKING:
    from kafkapy.server.services import Services


class ProduceLane:
    """One connection's requests to one topic."""

    __slots__ = ("_broker", "_last_topic", "_quotas", "_shape", "_times")

    def __init__(self, broker: Services) -> None:
        self._broker = broker
        self._quotas = broker.client_quotas
        self._last_topic: str | None = None
        self._shape: ProduceShape | None = None
        self._times = broker.metrics.requests.by_name["Produce"]

    def learn(self, frame: memoryview, header: RequestHeader, request: ProduceRequest) -> None:
        """A request went the long way: when it repeats the topic of the last one, later ones need
        not."""
        topics = request.topic_data
        topic = topics[0].name if len(topics) == 1 else None
        repeats = topic is not None and topic == self._last_topic
        self._last_topic = topic
        if not repeats or topic in INTERNAL_TOPICS:
            return
        if self._shape is None or self._shape.match(frame) is None:
            self._shape = ProduceShape.of(frame, header, request)

    def close(self) -> None:
        """The connection is gone; what waits was abandoned."""

    def handle(self, frame: memoryview) -> bytes | Pending | NoResponse | None:
        """Append and answer: the whole frame, now or later, or nothing with acks=0. None, and
        nothing done, if the request must take the long way."""
        shape = self._shape
        if shape is None or self._quotas.are_set:
            return None
        started = time.perf_counter()
        matched = shape.match(frame)
        if matched is None:
            return None
        correlation_id, index, records = matched
        broker = self._broker
        topic = shape.topic
        by_index = broker.replicas.partitions.get(topic)
        partition = by_index.get(index) if by_index is not None else None
        if partition is None or not partition.is_leader or partition.refused:
            return None
        try:
            info, _ = broker.replicas.append(topic, index, records, shape.acks, shape.version)
        except ApiError:
            return None
        if not info.duplicate:
            broker.metrics.appended(topic, info.records, len(records))
        answer: bytes | Pending | NoResponse
        if shape.acks == 0:
            answer = NO_RESPONSE
        elif shape.acks == -1 and partition.log.high_watermark <= info.last_offset:
            wait = ProduceWait(partition, info.last_offset + 1)
            answer = self._wait(shape, correlation_id, wait, info)
        else:
            answer = shape.response(
                correlation_id, index, 0, info.first_offset, info.log_append_time,
                info.log_start_offset,
            )  # fmt: skip
        self._times.add(time.perf_counter() - started)
        return answer

    def _wait(
        self, shape: ProduceShape, correlation_id: int, wait: ProduceWait, info: LogAppendInfo
    ) -> Pending:
        pending = Pending()
        purgatory = self._broker.replicas.produce_purgatory
        key = wait.partition.topic_partition

        def answer() -> None:
            offset = info.first_offset if wait.error is ErrorCode.NONE else -1
            frame = shape.response(
                correlation_id, key.partition, wait.error, offset, info.log_append_time,
                info.log_start_offset,
            )  # fmt: skip
            pending.complete(frame)

        deadline_ms = self._broker.clock.monotonic_ms() + max(0, shape.timeout_ms)
        operation = DelayedProduce(deadline_ms, [wait], answer)
        pending.on_abandon = lambda: purgatory.cancel(operation)
        purgatory.watch(operation, (key,))
        return pending
