"""Sends numbered records, and prints one JSON line for each acknowledgement
(`org.apache.kafka.tools.VerifiableProducer`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message

from kafkapy.common.java_numbers import ratio
from kafkapy.tools.librdkafka_client import ToolProducer
from kafkapy.tools.perf.producer_perf import wait_for_throttle
from kafkapy.tools.perf.throughput import Throttle

Emit = Callable[[str, Mapping[str, Any]], None]

_QUEUE_FULL_WAIT_S: Final = 0.1
# librdkafka takes 0 for the present time.
_TIMESTAMP_MIN: Final = 1
_TIMESTAMP_MAX: Final = 2**63 - 1


class NumberedRecords(NamedTuple):
    """The records to send: their number (negative: no end), rate, keys and values."""

    topic: str
    max_messages: int = -1
    throughput: float = -1
    value_prefix: int | None = None
    repeating_keys: int | None = None
    create_time_ms: int | None = None

    def value(self, index: int) -> str:
        return str(index) if self.value_prefix is None else f"{self.value_prefix}.{index}"

    def key(self, index: int) -> str | None:
        return None if not self.repeating_keys else str(index % self.repeating_keys)


class VerifiableProducer:
    """Sends numbered records until the last, or until `is_stopped`. `emit` gets the name and the
    fields of each event.
    """

    def __init__(
        self,
        producer: ToolProducer,
        records: NumberedRecords,
        emit: Emit,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._producer = producer
        self._records = records
        self._emit = emit
        self._is_stopped = is_stopped
        self._started_s = time.monotonic()
        self.sent = 0
        self.acked = 0

    def run(self) -> None:
        """Send the records. Call `finish` afterwards."""
        records = self._records
        self._emit("startup_complete", {})
        throttle = Throttle(records.throughput, time.monotonic())
        while self._has_more():
            if not throttle.blocks:
                self._send(self.sent)
            wait_for_throttle(self._producer, throttle, self.sent, self._has_more)

    def _has_more(self) -> bool:
        limit = self._records.max_messages
        return not self._is_stopped() and (limit < 0 or self.sent < limit)

    def finish(self) -> None:
        """Wait for outstanding acknowledgements, and emit the totals."""
        try:
            self._producer.flush()
        finally:
            self._emit_totals()

    def _emit_totals(self) -> None:
        elapsed_s = time.monotonic() - self._started_s
        self._emit("shutdown_complete", {})
        self._emit(
            "tool_data",
            {
                "sent": self.sent,
                "acked": self.acked,
                "target_throughput": self._records.throughput,
                "avg_throughput": ratio(self.acked, elapsed_s),
            },
        )

    def _send(self, index: int) -> None:
        records = self._records
        timestamp_args: dict[str, Any] = {}
        if records.create_time_ms is not None:
            elapsed_ms = int((time.monotonic() - self._started_s) * 1000)
            timestamp_ms = max(_TIMESTAMP_MIN, records.create_time_ms + elapsed_ms)
            timestamp_args["timestamp"] = min(timestamp_ms, _TIMESTAMP_MAX)
        key, value = records.key(index), records.value(index)
        while not self._is_stopped():
            try:
                self._producer.produce(
                    records.topic, value, key, on_delivery=self._delivered, **timestamp_args
                )
            except BufferError:
                self._producer.poll(_QUEUE_FULL_WAIT_S)
                continue
            except KafkaException as error:
                self._failed(error.args[0], key, value)
            self.sent += 1
            break
        self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        key, value = text_of(message.key()), text_of(message.value())
        if error is not None:
            self._failed(error, key, value)
            return
        self.acked += 1
        offset = message.offset()  # unknown with acks=0
        self._emit(
            "producer_send_success",
            {
                "key": key,
                "value": value,
                "topic": message.topic(),
                "partition": message.partition(),
                "offset": -1 if offset is None else offset,
            },
        )

    def _failed(self, error: KafkaError, key: str | None, value: str | None) -> None:
        self._emit(
            "producer_send_error",
            {
                "key": key,
                "value": value,
                "topic": self._records.topic,
                "exception": f"class {error.name()}",
                "message": error.str(),
            },
        )


def text_of(data: bytes | None) -> str | None:
    """Decode UTF-8, with replacement characters for invalid bytes."""
    return None if data is None else data.decode(errors="replace")
