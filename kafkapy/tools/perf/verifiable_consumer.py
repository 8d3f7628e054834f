"""Reads and commits records as a group member, and prints each event as a JSON line
(`org.apache.kafka.tools.VerifiableConsumer`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from kafkapy.tools.librdkafka_client import raise_if_final, subscribe
from kafkapy.tools.perf.verifiable_producer import Emit, text_of

_BATCH: Final = 500
# Short, so that the process ends soon after a signal.
_POLL_S: Final = 0.1


class VerifiableConsumer:
    """Reads a topic until the last record, or until `is_stopped`. `emit` gets the name and the
    fields of each event.
    """

    def __init__(
        self,
        consumer: Consumer,
        emit: Emit,
        is_stopped: Callable[[], bool] = lambda: False,
        *,
        max_messages: int = -1,
        verbose: bool = False,
        auto_commit: bool = False,
    ) -> None:
        self._consumer = consumer
        self._emit = emit
        self._is_stopped = is_stopped
        self._max_messages = max_messages
        self._verbose = verbose
        self._auto_commit = auto_commit
        self.consumed = 0

    def run(self, topic: str) -> None:
        """Read the records. Call `finish` afterwards.

        Raises:
            ApiError: the consumer cannot continue.
        """
        self._emit("startup_complete", {})
        subscribe(
            self._consumer,
            [topic],
            on_assign=lambda _, partitions: self._emit_partitions(
                "partitions_assigned", partitions
            ),
            on_revoke=lambda _, partitions: self._emit_partitions("partitions_revoked", partitions),
        )
        while (count := self._poll_count()) > 0:
            batch = [self._record_or_none(each) for each in self._consumer.consume(count, _POLL_S)]
            records = [message for message in batch if message is not None]
            if records:
                self._consume(records)

    def finish(self) -> None:
        """Leave the group."""
        self._consumer.close()
        self._emit("shutdown_complete", {})

    def _poll_count(self) -> int:
        """The number of records to read at once. It does not exceed `max_messages`: the group would
        miss records that are read beyond it.
        """
        if self._is_stopped():
            return 0
        return (
            min(_BATCH, self._max_messages - self.consumed) if self._max_messages >= 0 else _BATCH
        )

    def _consume(self, records: Sequence[Message]) -> None:
        self.consumed += len(records)
        for message in records if self._verbose else ():
            self._emit("record_data", record_fields(message))
        summaries = summarise(records)
        self._emit("records_consumed", {"count": len(records), "partitions": summaries})
        if not self._auto_commit:
            self._commit(summaries)

    def _commit(self, summaries: Iterable[Mapping[str, Any]]) -> None:
        offsets = [
            {"topic": s["topic"], "partition": s["partition"], "offset": s["maxOffset"] + 1}
            for s in summaries
        ]
        fields: dict[str, Any] = {"offsets": offsets, "success": True}
        tps = [TopicPartition(o["topic"], o["partition"], o["offset"]) for o in offsets]
        try:
            # `commit` raises only if no partition was committed.
            results = self._consumer.commit(offsets=tps, asynchronous=False) or ()
            failed = [each.error for each in results if each.error is not None]
        except KafkaException as error:
            failed = [error.args[0]]
        if failed:
            fields |= {"success": False, "error": failed[0].str()}
        self._emit("offsets_committed", fields)

    def _emit_partitions(self, event: str, partitions: Iterable[TopicPartition]) -> None:
        rows = [{"topic": p.topic, "partition": p.partition} for p in partitions]
        self._emit(event, {"partitions": rows})

    def _record_or_none(self, message: Message) -> Message | None:
        error = message.error()
        if error is None:
            return message
        raise_if_final(error)
        return None


def record_fields(message: Message) -> dict[str, Any]:
    """One record of `--verbose`."""
    return {
        "key": text_of(message.key()),
        "value": text_of(message.value()),
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
    }


def summarise(records: Iterable[Message]) -> list[dict[str, Any]]:
    """Count, first and last offset of each partition, in the order of their first records."""
    summaries: dict[tuple[Any, Any], dict[str, Any]] = {}
    for message in records:
        key = (message.topic(), message.partition())
        offset = message.offset()
        summary = summaries.setdefault(
            key,
            {
                "topic": key[0],
                "partition": key[1],
                "count": 0,
                "minOffset": offset,
                "maxOffset": offset,
            },
        )
        summary["count"] += 1
        summary["maxOffset"] = offset
    return list(summaries.values())
