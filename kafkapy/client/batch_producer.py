"""An idempotent producer of whole batches, without a thread.

For writers that build their own batches (Spark's sink). One request is in flight to each leader;
while the broker handles it, the caller builds the next batches. So a retried batch is never
overtaken, and sequences reach a partition in order (KIP-98).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from kafkapy.client.first_connection import is_temporary
from kafkapy.client.producer_settings import ProducerSettings
from kafkapy.client.transaction import ProducerIdentity, Transaction, new_identity
from kafkapy.common.errors import ApiError, ErrorCode, KafkapyError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkapy.record.batch_header import NO_SEQUENCE, add_to_sequence, read_header
from kafkapy.record.ready_batch import ReadyBatch, set_producer_state, split_in_two

if TYPE_CHECKING:
    from kafkapy.client.cluster import Cluster

_FIRST_VERSION: Final = 3  # batches of format 2
_LAST_VERSION: Final = 11  # later ones add partitions to transactions, or have topic ids


class DeliveryError(KafkapyError):
    """Records were not written."""


class RecordTooLarge(DeliveryError):
    """A single record exceeds the topic's max.message.bytes."""


class _NextStep(Enum):
    """Next steps after the response to a batch."""

    DONE = "done"
    RETRY = "again"
    SPLIT = "halve"
    NEW_IDENTITY = "new identity"
    REFUSED = "refused"


_NEXT_STEPS: Final = {
    ErrorCode.NONE: _NextStep.DONE,
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER: _NextStep.DONE,  # the first attempt was written
    ErrorCode.MESSAGE_TOO_LARGE: _NextStep.SPLIT,
    ErrorCode.RECORD_LIST_TOO_LARGE: _NextStep.SPLIT,
    # The log lost earlier batches in an unclean election: start again, as Java's producer does.
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: _NextStep.NEW_IDENTITY,
    ErrorCode.UNKNOWN_PRODUCER_ID: _NextStep.NEW_IDENTITY,
    ErrorCode.BROKER_NOT_AVAILABLE: _NextStep.RETRY,  # the leader is not in the metadata
}
_MISSING_TOPIC_ERRORS: Final = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
)


@dataclass(slots=True, eq=False)
class _PendingBatch:
    """A batch that is not acknowledged. `sequence` is set with its first attempt. `awaited_broker`
    is the broker whose response to the latest attempt is due.
    """

    data: ReadyBatch
    count: int
    deadline_s: float
    sequence: int = NO_SEQUENCE
    identity: ProducerIdentity | None = None
    tries: int = 0
    awaited_broker: int | None = None


_InFlightRequest = tuple[ProduceRequest, dict[TopicPartition, _PendingBatch]]


class BatchProducer:
    """Sends batches, one request at a time to each leader, until all are acknowledged.

    With a `transaction`, the batches are part of it.
    """

    def __init__(
        self, cluster: Cluster, settings: ProducerSettings, transaction: Transaction | None = None
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._transaction = transaction
        self._identity = transaction.identity if transaction else None
        self._sequences: dict[TopicPartition, int] = {}
        self._queues: dict[TopicPartition, deque[_PendingBatch]] = {}
        self._in_flight: dict[int, _InFlightRequest] = {}

    def leaders(self, topic: str) -> list[int]:
        """Fetch the leader of each partition of a topic, -1 for none. Waits for a topic that is
        being created, which the broker may do now (`auto.create.topics.enable`).

        Raises:
            DeliveryError: the topic does not exist after `max.block.ms`, no broker can be reached,
              or the topic is refused, for example because of its name.
        """
        deadline_s = time.monotonic() + self._settings.max_block_ms / 1000
        while True:
            try:
                with self._cluster.within(deadline_s):
                    found = self._cluster.metadata([topic], refresh=True, create=True).topics[topic]
            except ApiError as error:
                if not is_temporary(error) or time.monotonic() >= deadline_s:
                    raise DeliveryError(f"No rows can be written: {error.message}") from None
            else:
                if found.error is ErrorCode.NONE:
                    return [each.leader for each in found.partitions.values()]
                if found.error not in _MISSING_TOPIC_ERRORS:
                    raise DeliveryError(f"Topic {topic}: {found.error.name}")
                if time.monotonic() >= deadline_s:
                    raise DeliveryError(
                        f"Topic {topic} not present in metadata after "
                        f"{self._settings.max_block_ms} ms: {found.error.name}"
                    )
            self._cluster.pause()

    def send(self, topic_partition: TopicPartition, batch: ReadyBatch) -> None:
        """Queue a batch, and send it as soon as the one before it is acknowledged.

        Raises:
            DeliveryError: this batch or an earlier one was refused, or not accepted in time.
        """
        self.put(topic_partition, batch)
        self._exchange_with(self._target_broker(topic_partition))
        while len(self._queues[topic_partition]) > 1:  # an earlier batch is tried again
            self._exchange_with(self._target_broker(topic_partition))

    def put(self, topic_partition: TopicPartition, batch: ReadyBatch) -> None:
        """Queue a batch, to be sent with others."""
        deadline_s = time.monotonic() + self._settings.delivery_timeout_ms / 1000
        pending = _PendingBatch(batch, read_header(batch).record_count, deadline_s)
        self._queues.setdefault(topic_partition, deque()).append(pending)

    def flush(self) -> None:
        """Send all batches and wait until they are acknowledged. Raises DeliveryError."""
        while self._queues:
            for broker in {self._target_broker(each) for each in self._queues}:
                self._exchange_with(broker)

    def abandon(self) -> None:
        """Stop sending, and wait for outstanding responses, so that a transaction can then end."""
        self._queues.clear()
        for leader, (request, _) in self._in_flight.items():
            self._read_response(leader, request)
        self._in_flight.clear()

    def _target_broker(self, topic_partition: TopicPartition) -> int:
        """The broker of a partition's first batch: the one whose response is outstanding, else the
        leader.
        """
        broker = self._queues[topic_partition][0].awaited_broker
        return self._leader(topic_partition) if broker is None else broker

    def _leader(self, topic_partition: TopicPartition) -> int:
        """The leader of a partition with a batch. It is searched until the batch expires, as in
        Kafka: brokers may be away for longer than the API timeout, and one that has just started
        may have no topics in its metadata.
        """
        deadline_s = self._queues[topic_partition][0].deadline_s
        while True:
            try:
                with self._cluster.within(deadline_s):
                    return self._cluster.leader_of(topic_partition)
            except ApiError as error:
                if not is_temporary(error) or time.monotonic() >= deadline_s:
                    raise DeliveryError(f"{topic_partition}: {error.message}") from None
            self._cluster.pause()

    def _exchange_with(self, leader: int) -> None:
        """Read a leader's outstanding response, and send it the next request."""
        self._handle_response(leader)
        batches: dict[TopicPartition, _PendingBatch] = {}
        size = 0
        for topic_partition, queue in self._queues.items():
            pending = queue[0]
            if pending.awaited_broker is not None or self._leader(topic_partition) != leader:
                continue
            size += len(pending.data)
            if batches and size > self._settings.request_bytes:
                break
            batches[topic_partition] = pending
        if batches:
            with self._until_expiry(batches):
                self._send_request(leader, batches)

    def _until_expiry(
        self, batches: Mapping[TopicPartition, _PendingBatch]
    ) -> AbstractContextManager[None]:
        return self._cluster.within(min(each.deadline_s for each in batches.values()))

    def _send_request(self, leader: int, batches: dict[TopicPartition, _PendingBatch]) -> None:
        topics: dict[str, TopicProduceData] = {}
        for topic_partition, pending in batches.items():
            self._assign_identity(topic_partition, pending)
            pending.awaited_broker = leader
            pending.tries += 1
            topic, index = topic_partition
            data = topics.setdefault(topic, TopicProduceData(name=topic)).partition_data
            # The encoder accepts a bytearray, too.
            row = PartitionProduceData(index=index, records=pending.data)  # type: ignore[arg-type]
            data.append(row)
        if self._transaction is not None:
            self._add_to_transaction(self._transaction, batches)
        request = ProduceRequest(
            transactional_id=self._transaction.transactional_id if self._transaction else None,
            acks=self._settings.acks,
            timeout_ms=self._cluster.request_timeout_ms,
            topic_data=list(topics.values()),
        )
        self._in_flight[leader] = request, batches
        self._cluster.request_ahead(
            request, leader, min_version=_FIRST_VERSION, max_version=_LAST_VERSION
        )

    def _add_to_transaction(
        self, transaction: Transaction, partitions: Iterable[TopicPartition]
    ) -> None:
        try:
            transaction.add(partitions)
        except ApiError as error:
            raise DeliveryError(error.message) from None

    def _assign_identity(self, topic_partition: TopicPartition, pending: _PendingBatch) -> None:
        """Assign a batch's producer id and sequence, unless it has those of an earlier attempt.
        That attempt may have been written, and the leader detects duplicates by these two only.
        """
        if self._identity is None:
            self._identity = self._new_identity()
        if pending.identity is not None and (pending.tries or pending.identity == self._identity):
            return
        pending.identity = self._identity
        if self._settings.idempotent:
            pending.sequence = self._sequences.get(topic_partition, 0)
            after = add_to_sequence(pending.sequence, pending.count)
            self._sequences[topic_partition] = after
        set_producer_state(
            pending.data, *self._identity, pending.sequence, self._transaction is not None
        )

    def _new_identity(self) -> ProducerIdentity:
        if not self._settings.idempotent:
            return ProducerIdentity()
        try:
            return new_identity(self._cluster)
        except ApiError as error:
            raise DeliveryError(f"No rows can be written: {error.message}") from None

    def _handle_response(self, leader: int) -> None:
        """Read and handle a leader's outstanding response."""
        if leader not in self._in_flight:
            return
        request, batches = self._in_flight.pop(leader)
        with self._until_expiry(batches):
            results = self._read_response(leader, request)
        stale_topics = set()
        for topic_partition, pending in batches.items():
            pending.awaited_broker = None
            code, message = results.get(topic_partition) or results[None]
            if self._handle_result(topic_partition, pending, code, message) is _NextStep.RETRY:
                stale_topics.add(topic_partition.topic)
        if stale_topics:
            self._cluster.invalidate_topics(stale_topics)
            self._cluster.pause()

    def _read_response(
        self, leader: int, request: ProduceRequest
    ) -> dict[TopicPartition | None, tuple[ErrorCode, str]]:
        """The response for each partition; under None, the one for all other partitions."""
        try:
            response = self._cluster.request(
                request, broker_id=leader, min_version=_FIRST_VERSION, max_version=_LAST_VERSION
            )
        except ApiError as error:
            return {None: (error.code, error.message)}
        results: dict[TopicPartition | None, tuple[ErrorCode, str]] = {
            None: (ErrorCode.UNKNOWN_SERVER_ERROR, f"broker {leader} did not answer for it")
        }
        for topic in response.responses:
            for each in topic.partition_responses:
                code = ErrorCode(each.error_code)
                results[TopicPartition(topic.name, each.index)] = code, _error_text(code, each)
        return results

    def _handle_result(
        self, topic_partition: TopicPartition, pending: _PendingBatch, code: ErrorCode, message: str
    ) -> _NextStep:
        """Handle the response to the first batch of a partition's queue."""
        queue = self._queues[topic_partition]
        step = _NEXT_STEPS.get(code, _NextStep.RETRY if code.retriable else _NextStep.REFUSED)
        if step is _NextStep.DONE:
            queue.popleft()
            if not queue:
                del self._queues[topic_partition]
        elif step is _NextStep.SPLIT and pending.count > 1:
            self._split(queue)
        elif step is _NextStep.SPLIT:
            raise RecordTooLarge(f"{topic_partition}: {message}")
        elif step is _NextStep.REFUSED:
            raise DeliveryError(f"{topic_partition}: {message}")
        elif pending.tries > self._settings.retries or time.monotonic() >= pending.deadline_s:
            raise DeliveryError(
                f"{topic_partition}: {message}; given up after {pending.tries} attempts "
                f"(delivery.timeout.ms={self._settings.delivery_timeout_ms})"
            )
        elif step is _NextStep.NEW_IDENTITY:
            if pending.identity == self._identity:
                self._reset_identity(topic_partition, message)
            pending.identity = None
        return step

    def _split(self, queue: deque[_PendingBatch]) -> None:
        """Split a batch that is too large for its topic into two."""
        whole = queue.popleft()
        sequence = whole.sequence
        parts = []
        for data in split_in_two(whole.data):
            count = read_header(data).record_count
            part = _PendingBatch(data, count, whole.deadline_s, sequence, whole.identity)
            if whole.identity is not None:
                set_producer_state(data, *whole.identity, sequence, self._transaction is not None)
            parts.append(part)
            if sequence != NO_SEQUENCE:
                sequence = add_to_sequence(sequence, count)
        queue.extendleft(reversed(parts))

    def _reset_identity(self, topic_partition: TopicPartition, message: str) -> None:
        """Get another producer id, and start sequences at 0 for all batches from now on."""
        if self._transaction is not None:
            raise DeliveryError(f"{topic_partition}: {message}")
        for leader in list(self._in_flight):
            self._handle_response(leader)
        self._identity = None
        self._sequences.clear()


def _error_text(code: ErrorCode, answer: Any) -> str:
    """A message for the error of a partition."""
    details = [answer.error_message]
    details += [each.batch_index_error_message for each in answer.record_errors[:1]]
    return ": ".join([code.name, *filter(None, details)])
