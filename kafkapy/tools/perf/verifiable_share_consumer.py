"""Reads and acknowledges records as a member of a share group, and prints each event as a JSON line
(`org.apache.kafka.tools.VerifiableShareConsumer`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from confluent_kafka import KafkaException, Message, ShareConsumer

from kafkapy.tools.librdkafka_client import poll_records, raise_if_final, subscribe
from kafkapy.tools.perf.verifiable_consumer import record_fields
from kafkapy.tools.perf.verifiable_producer import Emit

# Short, so that the process ends soon after a signal.
_POLL_S: Final = 0.1


class VerifiableShareConsumer:
    """Reads a topic until the last record, or until `is_stopped`. `emit` gets the name and the
    fields of each event.
    """

    def __init__(
        self,
        consumer: ShareConsumer,
        emit: Emit,
        is_stopped: Callable[[], bool] = lambda: False,
        *,
        max_messages: int = -1,
        verbose: bool = False,
    ) -> None:
        self._consumer = consumer
        self._emit = emit
        self._is_stopped = is_stopped
        self._max_messages = max_messages
        self._verbose = verbose
        self.consumed = 0

    def run(self, topic: str) -> None:
        """Read the records. Call `finish` afterwards.

        Raises:
            ApiError: the consumer cannot continue.
        """
        self._emit("startup_complete", {})
        subscribe(self._consumer, [topic])
        while self._has_more():
            batch = poll_records(self._consumer, _POLL_S)
            records = [message for message in batch if _is_record(message)]
            if records:
                self._consume(records)

    def _has_more(self) -> bool:
        limit = self._max_messages
        return not self._is_stopped() and (limit < 0 or self.consumed < limit)

    def finish(self) -> None:
        """Leave the group."""
        self._consumer.close()
        self._emit("shutdown_complete", {})

    def _consume(self, records: Sequence[Message]) -> None:
        self.consumed += len(records)
        for message in records if self._verbose else ():
            self._emit("record_data", record_fields(message))
        partitions = _offsets(records)
        self._emit("records_consumed", {"count": len(records), "partitions": partitions})
        for message in records:
            self._consumer.acknowledge(message)
        fields = {"count": len(records), "partitions": partitions, "success": True}
        try:
            errors = self._consumer.commit_sync()
            failed = [error for error in (errors or {}).values() if error is not None]
        except KafkaException as error:
            failed = [error]
        if failed:
            fields |= {"success": False, "error": str(failed[0])}
        self._emit("offsets_acknowledged", fields)


def _offsets(records: Sequence[Message]) -> list[dict[str, Any]]:
    """The offsets of each partition, in the order of their first records."""
    found: dict[tuple[Any, Any], list[Any]] = {}
    for message in records:
        found.setdefault((message.topic(), message.partition()), []).append(message.offset())
    return [
        {"topic": topic, "partition": partition, "count": len(offsets), "offsets": offsets}
        for (topic, partition), offsets in found.items()
    ]


def _is_record(message: Message) -> bool:
    error = message.error()
    if error is not None:
        raise_if_final(error)
    return error is None
