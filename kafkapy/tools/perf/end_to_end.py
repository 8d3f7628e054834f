"""Measures the time from a record's send to its read (`org.apache.kafka.tools.EndToEndLatency`)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from confluent_kafka import (
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from kafkapy.client.librdkafka import is_of_unused_group
from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.common.java_numbers import decimal, ratio
from kafkapy.tools.librdkafka_client import ToolProducer

POLL_TIMEOUT_MS: Final = 60_000
_PERCENTILES: Final = ((0.5, "50th"), (0.99, "99th"), (0.999, "99.9th"))
_PRINT_INTERVAL: Final = 1000
_OFFSET_TIMEOUT_S: Final = 30.0


class Latencies(NamedTuple):
    """The result of a run, in ms. Percentiles are truncated to whole numbers, as in Kafka's
    tool.
    """

    messages: int
    average_ms: float
    percentiles_ms: dict[str, int]

    def lines(self) -> list[str]:
        """The last two lines."""
        line = ", ".join(f"{name} = {ms}" for name, ms in self.percentiles_ms.items())
        return [f"Avg latency: {decimal(self.average_ms, 4)} ms", f"Percentiles: {line}"]


def summary(latencies_ns: Sequence[int]) -> Latencies:
    """The result for the latencies of all messages."""
    ordered = sorted(latencies_ns)
    return Latencies(
        len(ordered),
        ratio(sum(ordered) / 1e6, len(ordered)),
        {
            name: ordered[int(p * len(ordered))] // 1_000_000 if ordered else 0
            for p, name in _PERCENTILES
        },
    )


class EndToEnd:
    """One producer and one consumer of a topic. Each message is read before the next is sent."""

    def __init__(self, producer: ToolProducer, consumer: Consumer, topic: str) -> None:
        self._producer = producer
        self._consumer = consumer
        self._topic = topic

    def seek_to_ends(self, partitions: Sequence[int]) -> None:
        """Place the consumer at the ends of the partitions.

        Raises:
            ApiError: an end is unknown after the timeout.
        """
        ends = []
        for partition in partitions:
            tp = TopicPartition(self._topic, partition)
            try:
                _, end = self._consumer.get_watermark_offsets(tp, timeout=_OFFSET_TIMEOUT_S)
            except KafkaException as error:
                message = (
                    f"The end of {self._topic}-{partition} is not known: {error.args[0].str()}"
                )
                raise ApiError(ErrorCode.REQUEST_TIMED_OUT, message) from error
            ends.append(TopicPartition(self._topic, partition, end if end >= 0 else OFFSET_END))
        self._consumer.assign(ends)

    def run(
        self,
        messages: int,
        size_bytes: int,
        print_line: Callable[[str], None],
        show_progress: Callable[[str], None],
    ) -> Latencies:
        """Send and read `messages` records of one random letter each.

        Raises:
            ApiError: a record was not acknowledged, or not read in time.
            ConfigError: an unexpected record was read: other clients write to the topic.
        """
        rng = random.Random(0)
        latencies_ns: list[int] = []
        for index in range(messages):
            payload = bytes([rng.randrange(65, 91)]) * size_bytes
            start_ns = time.perf_counter_ns()
            self._send(payload)
            self._receive(payload)
            latencies_ns.append(time.perf_counter_ns() - start_ns)
            line = f"{index}\t{latencies_ns[-1] / 1e6}"
            if index % _PRINT_INTERVAL == 0:
                print_line(line)
            show_progress(line)
        return summary(latencies_ns)

    def _polled(self, limit_s: float) -> Message | None:
        """The next record or error, None if there is none in time."""
        deadline_s = time.monotonic() + limit_s
        while True:
            left_s = max(0.0, deadline_s - time.monotonic())
            message: Message | None = self._consumer.poll(left_s)
            if message is None or not is_of_unused_group(message.error()):
                return message

    def _send(self, payload: bytes) -> None:
        failures: list[KafkaError] = []

        def on_delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failures.append(error)

        try:
            self._producer.produce(self._topic, payload, on_delivery=on_delivered)
        except KafkaException as error:
            raise ApiError(ErrorCode.MESSAGE_TOO_LARGE, error.args[0].str()) from error
        self._producer.flush()
        if failures:
            raise ApiError(ErrorCode.REQUEST_TIMED_OUT, failures[0].str())

    def _receive(self, payload: bytes) -> None:
        message = self._polled(POLL_TIMEOUT_MS / 1000)
        if message is None:
            raise ApiError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"poll() timed out before finding a result (timeout:[{POLL_TIMEOUT_MS}])",
            )
        error = message.error()
        if error is not None:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, error.str())
        check_read(payload, message.value() or b"")
        extra = self._polled(0)
        if extra is not None and extra.error() is None:
            raise ConfigError("Only one result was expected during this test. We found [2]")


def check_read(sent: bytes, read: bytes) -> None:
    """
    Raises:
        ConfigError: the read record differs from the sent one.
    """
    if sent != read:
        raise ConfigError(
            f"The message read [{read.decode(errors='replace')}] did not match the message sent"
            f" [{sent.decode(errors='replace')}]"
        )
