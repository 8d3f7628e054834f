"""Sends lines as records with librdkafka (`kafka.tools.ConsoleProducer`)."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Final

from confluent_kafka import KafkaError, KafkaException, Message

from kafkapy.client.properties import int_property
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.tools.console.line_reader import Line, LineReader
from kafkapy.tools.librdkafka_client import Reporter, make_producer

MAX_BLOCK_MS: Final = 60_000
_QUEUE_FULL_WAIT_S: Final = 0.1
_FIRST_METADATA_WAIT_S: Final = 1.0


class ConsoleProducer:
    """Sends records to one topic. Failures are passed to `warn`, as in Kafka, or raised if the
    send waits for the acknowledgement.
    """

    def __init__(
        self, topic: str, properties: Mapping[str, str], warn: Callable[[str], None]
    ) -> None:
        """
        Raises:
            ConfigError: librdkafka refuses a property.
        """
        self.sent = 0
        self._sync = False
        self._failure: str | None = None
        self._topic = topic
        self._warn = warn
        self._max_block_ms = int_property(properties, "max.block.ms", MAX_BLOCK_MS)
        self._producer = make_producer(properties, Reporter(warn, properties))

    def wait_for_topic(self) -> None:
        """Wait until the topic is in the metadata. Automatic topic creation creates it now.

        Raises:
            ApiError: no broker returned it in time, or one refused the login.
        """
        deadline = time.monotonic() + self._max_block_ms / 1000
        wait_s = _FIRST_METADATA_WAIT_S
        while True:
            try:
                left_s = max(0.0, deadline - time.monotonic())
                self._producer.list_topics(self._topic, timeout=min(wait_s, left_s))
                return
            except KafkaException as error:
                # The poll runs the reporter: it logs the reason, or raises if login was refused.
                self._producer.poll(_QUEUE_FULL_WAIT_S)
                if time.monotonic() >= deadline:
                    raise ApiError(
                        ErrorCode.REQUEST_TIMED_OUT,
                        f"Topic {self._topic} not present in metadata after {self._max_block_ms}"
                        f" ms: {error.args[0].str()}",
                    ) from error
            wait_s *= 2  # a broker may take longer than that to answer

    def send(self, line: Line, *, sync: bool = False) -> None:
        """Queue one record, or with `sync` wait until it is acknowledged.

        Raises:
            ApiError: it failed, with `sync`. Otherwise a failure is passed to `warn` later.
        """
        self._sync = sync
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    key=line.key,
                    value=line.value,
                    headers=line.headers or None,
                    on_delivery=self._delivered,
                )
                break
            except BufferError:
                self._producer.poll(_QUEUE_FULL_WAIT_S)
            except KafkaException as error:
                # For example, the record is too large. It was not queued; the next line may fit.
                self._failed(error.args[0], line.key, line.value)
                break
        self._producer.poll(0)
        if sync:
            self._producer.flush()
        self._raise_failure()

    def close(self) -> None:
        """Wait until every queued record is acknowledged or has failed."""
        self._producer.flush()

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.sent += 1
        else:
            self._failed(error, message.key(), message.value())

    def _failed(self, error: KafkaError, key: bytes | None, value: bytes | None) -> None:
        sizes = ["null" if part is None else f"{len(part)} bytes" for part in (key, value)]
        text = (
            f"Error when sending message to topic {self._topic} with key: {sizes[0]}, value: "
            f"{sizes[1]} with error: {error.str()}"
        )
        if self._sync:
            self._failure = text  # raised later, because a fatal error that follows has the reason
        else:
            self._warn(text)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, self._failure)


def send_lines(
    lines: Iterator[bytes], reader: LineReader, producer: ConsoleProducer, *, sync: bool
) -> None:
    """Send every line. Lines before a malformed one are sent and acknowledged.

    Raises:
        ConfigError: a line does not match the reader's properties.
        ApiError: a line failed, with `sync`.
    """
    try:
        for number, line in enumerate(lines, 1):
            producer.send(reader.read(line, number), sync=sync)
    finally:
        producer.close()


def lines_of(stream: IO[bytes], prompt: Callable[[], None] | None = None) -> Iterator[bytes]:
    """Lines that end in \\n, \\r\\n or \\r, without their ends. Bytes are not decoded."""
    # Latin-1 maps bytes to characters one to one: universal newlines at the speed of C.
    text = io.TextIOWrapper(stream, encoding="latin-1", newline=None)
    try:
        while True:
            if prompt is not None:
                prompt()
            line = text.readline()
            if not line:
                return
            yield line.removesuffix("\n").encode("latin-1")
    finally:
        text.detach()
