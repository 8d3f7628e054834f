"""Reads records with librdkafka, and prints them as text
(`org.apache.kafka.tools.consumer.ConsoleConsumer`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka import Message as RawMessage

from kafkapy.client.librdkafka import consumer_config, is_of_unused_group
from kafkapy.client.properties import int_property
from kafkapy.common.errors import ApiError, ErrorCode, KafkapyError
from kafkapy.common.topic_partition import validate_topic_name
from kafkapy.tools.console.matching_topics import MatchingTopics
from kafkapy.tools.console.message_formatter import Message
from kafkapy.tools.librdkafka_client import Reporter, make_client, raise_if_final, subscribe

EARLIEST: Final = OFFSET_BEGINNING
LATEST: Final = OFFSET_END
# Short: librdkafka waits outside of Python, so Ctrl-C and --timeout-ms take effect after a poll.
_POLL_S: Final = 0.1
# The limit for the first response of a broker. The limit for records is an option.
API_TIMEOUT: Final = "default.api.timeout.ms"
API_TIMEOUT_MS: Final = 60_000
_CHECK_EVERY_S: Final = 5.0
_CHECK_LIMIT_S: Final = 1.0
_TIMESTAMP_TYPES: Final = {
    TIMESTAMP_CREATE_TIME: "CreateTime",
    TIMESTAMP_LOG_APPEND_TIME: "LogAppendTime",
}


@dataclass(frozen=True, slots=True)
class Source:
    """The source: a topic, a pattern of topics, or one partition from an offset."""

    topic: str | None = None
    include: str | None = None
    partition: int | None = None
    offset: int = LATEST


class ConsoleConsumer:
    """Reads records one by one. Commits offsets only of records that were returned."""

    def __init__(
        self, source: Source, properties: Mapping[str, str], warn: Callable[[str], None]
    ) -> None:
        """
        Raises:
            ConfigError: librdkafka refuses a property; or from `name_pattern`.
            ApiError: INVALID_TOPIC_EXCEPTION.
        """
        config = {**consumer_config(properties), "enable.auto.offset.store": "false"}
        self._reporter = Reporter(warn, properties)
        self._consumer: Consumer = make_client(Consumer, config, self._reporter)
        self._commits = properties.get("enable.auto.commit", "true").lower() == "true"
        self._servers = properties.get("bootstrap.servers", "")
        self._connect_timeout_ms = int_property(properties, API_TIMEOUT, API_TIMEOUT_MS)
        # The first record of each partition that was returned since the output was flushed.
        self._unwritten: dict[tuple[str, int], int] = {}
        self._is_assigned = source.partition is not None
        self._subscribed = None if self._is_assigned else source.topic
        self._is_missing = False
        self._matching: MatchingTopics | None = None
        if source.include is not None:
            self._matching = MatchingTopics(self._consumer, source.include, properties)
        self._start(source)

    def _start(self, source: Source) -> None:
        if source.partition is not None and source.topic is not None:
            self._commits = False
            validate_topic_name(source.topic)
            self._consumer.assign([TopicPartition(source.topic, source.partition, source.offset)])
        elif source.topic is not None:
            subscribe(self._consumer, [source.topic])

    def messages(self, timeout_ms: int | None, idle: Callable[[], None]) -> Iterator[Message]:
        """Yield records as they arrive. `idle` is called before each wait.

        Raises:
            TimeoutError: the consumer waited `timeout_ms` for a record. The time that the caller
                takes to write records does not count.
            ApiError: the consumer cannot continue.
        """
        waited_s = 0.0
        connection_timeout = _ConnectionTimeout(
            self._consumer, self._servers, self._connect_timeout_ms
        )
        while True:
            if self._matching is not None and self._matching.refresh():
                connection_timeout.has_response = True
            raw = self._consumer.poll(0)
            if raw is None:
                idle()
                self._unwritten.clear()
                start_s = time.monotonic()
                raw = self._consumer.poll(_POLL_S)
                waited_s += time.monotonic() - start_s
            if raw is None:
                if timeout_ms is not None and waited_s * 1000 >= timeout_ms:
                    raise TimeoutError
                connection_timeout.check()
                self._look_for_missing_topic()
                continue
            if raw.error() is not None:
                self._report_error(raw)
                continue
            waited_s = 0.0
            connection_timeout.has_response = True
            if self._commits:
                self._consumer.store_offsets(message=raw)
                self._unwritten.setdefault((raw.topic(), raw.partition()), raw.offset())
            yield message_of(raw)

    def reset_unwritten_offsets(self) -> None:
        """Reset the stored offsets to the first records since the last `idle`: those records were
        not written.
        """
        for partition, offset in self._unwritten.items():
            with suppress(KafkaException):  # the partition was assigned to another member
                self._consumer.store_offsets(offsets=[TopicPartition(*partition, offset)])

    def close(self) -> None:
        """Commit the offsets of returned records, and leave the group."""
        self._consumer.close()

    def _report_error(self, raw: RawMessage) -> None:
        error = raw.error()
        if self._is_assigned and is_of_unused_group(error):
            return
        raise_if_final(error)
        if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            self._is_missing = True
            if self._matching is not None:
                self._matching.refresh_soon()
        self._reporter.report_once(f"WARN {error.str()}")

    def _look_for_missing_topic(self) -> None:
        """Subscribe again once the topic exists. The brokers may create it because of the look-up.

        librdkafka looks for it only every `metadata.max.age.ms`; Java's consumers do not wait.
        """
        topic = self._subscribed
        if topic is None or not self._is_missing:
            return
        with suppress(KafkaException):  # no broker responded in time
            found = self._consumer.list_topics(topic, timeout=_CHECK_LIMIT_S)
            if found.topics[topic].partitions:
                subscribe(self._consumer, [topic])
                self._is_missing = False


class _ConnectionTimeout:
    """Ends a consumer that gets no response from any broker; librdkafka would retry for ever."""

    def __init__(self, consumer: Consumer, servers: str, timeout_ms: int) -> None:
        self._consumer = consumer
        self._servers = servers
        self._timeout_ms = timeout_ms
        now_s = time.monotonic()
        self._deadline_s = now_s + timeout_ms / 1000
        self._next_s = min(now_s + _CHECK_LIMIT_S, self._deadline_s)
        self.has_response = False

    def check(self) -> None:
        """Check whether a broker has responded. After a response, calls return at once.

        Raises:
            ApiError: NETWORK_EXCEPTION, after the timeout.
        """
        now_s = time.monotonic()
        if self.has_response or now_s < self._next_s:
            return
        is_last = now_s >= self._deadline_s
        # A cluster with very many topics responds late, so the last check waits longest.
        limit_s = min(_CHECK_EVERY_S, self._timeout_ms / 1000) if is_last else _CHECK_LIMIT_S
        try:
            self._consumer.list_topics(timeout=limit_s)
        except KafkaException as error:
            if is_last:
                raise ApiError(
                    ErrorCode.NETWORK_EXCEPTION,
                    f"No broker of {self._servers} answered within {self._timeout_ms} ms",
                ) from error
            self._next_s = min(time.monotonic() + _CHECK_EVERY_S, self._deadline_s)
        else:
            self.has_response = True


def print_messages(
    messages: Iterator[Message],
    render: Callable[[Message], bytes],
    out: IO[bytes],
    *,
    max_messages: int | None,
    skip_errors: bool,
    warn: Callable[[str], None],
    count: Callable[[], None],
) -> None:
    """Write records until `max_messages`. `count` is called before each record is formatted.

    Raises:
        KafkapyError: a record cannot be formatted, and errors are not skipped.
        BrokenPipeError: the reader of `out` is closed.
    """
    remaining = max_messages
    if remaining is not None and remaining <= 0:
        return
    for message in messages:
        count()
        try:
            out.write(render(message))
        except KafkapyError as error:
            if not skip_errors:
                raise
            warn(f"ERROR Error processing message, skipping this message: {error}")
        if remaining is not None:
            remaining -= 1
            if remaining <= 0:
                return


def message_of(raw: RawMessage) -> Message:
    """Convert a record of librdkafka."""
    kind, timestamp = raw.timestamp()
    return Message(
        raw.topic(),
        raw.partition(),
        raw.offset(),
        timestamp,
        _TIMESTAMP_TYPES.get(kind),
        raw.key(),
        raw.value(),
        _headers_of(raw),
    )


def _headers_of(raw: RawMessage) -> Sequence[tuple[str, bytes | None]] | None:
    try:
        return raw.headers() or ()
    except (SystemError, UnicodeDecodeError):
        return None  # confluent-kafka decodes names as UTF-8, but brokers accept any bytes
