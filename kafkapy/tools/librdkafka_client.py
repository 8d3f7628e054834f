"""Creates confluent-kafka clients with readable errors."""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from kafkapy.client.librdkafka import (
    RECORD_MAX,
    consumer_config,
    create_client,
    producer_config,
    share_consumer_config,
)
from kafkapy.client.properties import int_property
from kafkapy.client.security import security_from
from kafkapy.client.transport import connect
from kafkapy.common.config_def import ConfigDef, ConfigKey, ConfigType, at_least, one_of
from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.common.topic_partition import validate_topic_name
from kafkapy.record.batch_header import HEADER_SIZE

if TYPE_CHECKING:
    from confluent_kafka import ShareConsumer

ClientT = TypeVar("ClientT")

# In calls of 200 ms and more, confluent-kafka continues after a fatal error. It then calls
# `on_delivery` while the exception is pending, which may lose it.
_FLUSH_MAX_S: Final = 0.1
# The limit of the values in the queue. Keys and headers do not count.
_QUEUE_KBYTES: Final = "queue.buffering.max.kbytes"
_QUEUE_KBYTES_DEFAULT: Final = 1 << 20
_RECORD_MAX_DEFAULT: Final = 1_000_000
_RECORD_OVERHEAD_MAX: Final = 21  # Java's DefaultRecord.MAX_RECORD_OVERHEAD
# librdkafka 2.16 warns that its share consumer is a preview.
_ERRORS_ONLY: Final = "3"


_I, _L = ConfigType.INT, ConfigType.LONG
# Properties of `ProducerConfig` for which librdkafka accepts more values than Kafka, or fails late.
_PRODUCER_CONFIGS: Final = ConfigDef(
    (
        ConfigKey("acks", ConfigType.STRING, "all", *one_of("all", "-1", "0", "1")),
        ConfigKey("batch.size", _I, None, *at_least(0)),
        ConfigKey("buffer.memory", _L, None, *at_least(0)),
        ConfigKey("linger.ms", _L, None, *at_least(0)),
        ConfigKey("max.block.ms", _L, None, *at_least(0)),
        ConfigKey("metadata.max.age.ms", _L, None, *at_least(0)),
        ConfigKey("request.timeout.ms", _I, None, *at_least(0)),
        ConfigKey("retries", _I, None, *at_least(0)),
        ConfigKey("retry.backoff.ms", _L, None, *at_least(0)),
        ConfigKey("send.buffer.bytes", _I, None, *at_least(-1)),
    )
)
_COUNTS: Final = re.compile(r" \(after .*\)$|\d+/\d+ (?=brokers are down)")
# A broker whose certificate is refused, in librdkafka's text, which never has the reason.
_REFUSED_BROKER: Final = re.compile(
    r"\w*ssl://(?:\[(?P<ipv6>[^]]+)\]|(?P<host>[^:/]+)):(?P<port>\d+)/.*certificate verify failed"
)
_REFUSED_CLIENT: Final = re.compile(r" alert (.*certificate|unknown ca|handshake failure)")
_CONNECT_S: Final = 5.0


class Reporter:
    """Reports each error once: librdkafka repeats errors while a broker is unreachable.

    librdkafka also retries a refused login or certificate for ever, whereas Kafka's clients fail.
    So the call that serves callbacks (`poll`, `flush`, `consume`) raises after one of these, unless
    `retries_authentication`. `properties` are those of the client.
    """

    def __init__(
        self,
        warn: Callable[[str], None],
        properties: Mapping[str, str],
        *,
        retries_authentication: bool = False,
    ) -> None:
        self._warn = warn
        self._properties = properties
        self._retries_authentication = retries_authentication
        self._reported: set[str] = set()

    def report_once(self, text: str) -> None:
        """Log a warning, unless it was logged before."""
        # Errors that differ only in counts and durations are the same.
        without_counts = _COUNTS.sub("", text)
        if without_counts not in self._reported:
            self._reported.add(without_counts)
            self._warn(text)

    def error(self, error: KafkaError) -> None:
        """librdkafka's `error_cb`. Its exceptions are raised by the call that serves callbacks.

        Raises:
            ApiError: SASL_AUTHENTICATION_FAILED; or NETWORK_EXCEPTION, because the broker or the
                client refuses the certificate of the other.
        """
        refusal = self._refusal(error)
        if refusal is not None and not self._retries_authentication:
            raise refusal
        self.report_once(f"WARN {refusal or error.str()}")

    def _refusal(self, error: KafkaError) -> ApiError | None:
        text = error.str()
        if error.code() == KafkaError._AUTHENTICATION:
            return ApiError(ErrorCode.SASL_AUTHENTICATION_FAILED, text)
        refused_broker = _REFUSED_BROKER.match(text)
        if refused_broker is None:
            is_refused = _REFUSED_CLIENT.search(text) is not None
            return ApiError(ErrorCode.NETWORK_EXCEPTION, text) if is_refused else None
        host, port = refused_broker["ipv6"] or refused_broker["host"], refused_broker["port"]
        try:
            connect(host, int(port), security_from(self._properties), _CONNECT_S).close()
        except ApiError as reason:
            return reason
        return None  # perhaps the broker has another certificate now


class ToolProducer(Producer):  # type: ignore[misc]
    """A producer whose `poll` and `flush` raise an ApiError after a fatal error, and whose
    `produce` refuses a record that can never be queued.

    For example, an idempotent producer without permission to write gets no producer id. Records
    that are not acknowledged then fail with `Purged in queue`.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(config)
        self._queue_bytes = 1024 * int_property(config, _QUEUE_KBYTES, _QUEUE_KBYTES_DEFAULT)
        self._record_bytes_max = int_property(config, RECORD_MAX, _RECORD_MAX_DEFAULT)

    def produce(
        self,
        topic: str,
        value: bytes | str | None = None,
        key: bytes | str | None = None,
        *,
        on_delivery: Callable[[KafkaError | None, Message], None] | None = None,
        timestamp: int = 0,
        headers: Sequence[tuple[str, bytes | None]] | None = None,
    ) -> None:
        """Queue a record.

        Raises:
            BufferError: the queue is full; it has room after acknowledgements.
            KafkaException: librdkafka refuses the record, or it is larger than the whole queue.
        """
        try:
            # Without keywords, because those would take a third of the time.
            super().produce(topic, value, key, -1, on_delivery, on_delivery, timestamp, headers)
        except BufferError:
            if len(_as_bytes(value)) <= self._queue_bytes:
                raise
            limit = "the total memory buffer you have configured with the buffer.memory"
            raise _too_large(_size_in_java(value, key, headers or ()), limit) from None
        except KafkaException as error:
            if error.args[0].code() != KafkaError.MSG_SIZE_TOO_LARGE:
                raise
            limit = f"{self._record_bytes_max}, which is the value of the max.request.size"
            raise _too_large(_size_in_java(value, key, headers or ()), limit) from None

    def poll(self, timeout: float = -1) -> int:
        with _fatal_errors():
            events: int = super().poll(timeout)
        return events

    def flush(self, timeout: float = -1) -> int:
        """Wait until every record is acknowledged or has failed, for at most `timeout` seconds
        unless that is negative. Returns how many records are left.

        Raises:
            ApiError: a fatal error, or raised by the reporter.
        """
        end_s = time.monotonic() + timeout if timeout >= 0 else math.inf
        while True:
            left_s = end_s - time.monotonic()
            with _fatal_errors():
                queued: int = super().flush(max(0, min(left_s, _FLUSH_MAX_S)))
            if not queued or left_s <= _FLUSH_MAX_S:
                return queued


def _too_large(size: int, limit: str) -> KafkaException:
    text = f"The message is {size} bytes when serialized which is larger than {limit}"
    text += " configuration."
    return KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, text))


def _size_in_java(
    value: bytes | str | None,
    key: bytes | str | None,
    headers: Sequence[tuple[str, bytes | None]],
) -> int:
    """The size that Java's producer compares with its limits: an upper bound of a record and the
    header of its batch (`DefaultRecordBatch.estimateBatchSizeUpperBound`).
    """
    fields = [value, key, *(part for header in headers for part in header)]
    size = HEADER_SIZE + _RECORD_OVERHEAD_MAX + _varint_size(len(headers))
    for field in fields:
        length = len(_as_bytes(field))
        size += _varint_size(length) + length
    return size


def _as_bytes(field: bytes | str | None) -> bytes:
    return field.encode() if isinstance(field, str) else field or b""


def _varint_size(number: int) -> int:
    """The bytes of a zigzag varint."""
    return max(1, -(-(2 * number).bit_length() // 7))


@contextmanager
def _fatal_errors() -> Iterator[None]:
    """Convert the exception that confluent-kafka raises instead of calling `error_cb`."""
    try:
        yield
    except KafkaException as error:
        fatal = error.args[0]
        code = _lasting_error(fatal) or ErrorCode.UNKNOWN_SERVER_ERROR
        raise ApiError(code, fatal.str()) from error


# Errors that last, although librdkafka does not always count them as fatal.
_LASTING_ERRORS: Final = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.INVALID_TOPIC_EXCEPTION,
    ErrorCode.INVALID_GROUP_ID,
    ErrorCode.INVALID_SESSION_TIMEOUT,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.UNSUPPORTED_ASSIGNOR,
    ErrorCode.GROUP_MAX_SIZE_REACHED,
    ErrorCode.CORRUPT_MESSAGE,
)
# A fenced consumer gets the first one, and the reader of a damaged batch the last one.
_FINAL_ERRORS: Final = (KafkaError._FATAL, KafkaError._AUTO_OFFSET_RESET, KafkaError._BAD_MSG)


def _lasting_error(error: KafkaError) -> ErrorCode | None:
    code = ErrorCode(error.code())
    return code if code in _LASTING_ERRORS else None


def raise_if_final(error: KafkaError) -> None:
    """Check the error that a consumer got instead of a record.

    librdkafka reports that the topic or the group is forbidden, that the group refuses the member,
    that a batch is damaged, or that a partition has no valid committed offset
    (`auto.offset.reset=none`), and then waits or retries for ever; Kafka's consumers fail. For the
    codes of `_FINAL_ERRORS`, `fatal()` is false.

    Raises:
        ApiError: the consumer cannot continue.
    """
    code = _lasting_error(error)
    if code is not None or error.fatal() or error.code() in _FINAL_ERRORS:
        raise ApiError(code or ErrorCode.UNKNOWN_SERVER_ERROR, error.str())


def make_producer(
    properties: Mapping[str, str], reporter: Reporter, extra: Mapping[str, Any] | None = None
) -> ToolProducer:
    """A producer with Kafka's properties; `extra` has librdkafka's own. Raises as `make_client`."""
    for name in _PRODUCER_CONFIGS.keys.keys() & properties.keys():
        _PRODUCER_CONFIGS.parse(name, properties[name])
    return make_client(ToolProducer, {**producer_config(properties), **(extra or {})}, reporter)


def make_consumer(
    properties: Mapping[str, str], reporter: Reporter, extra: Mapping[str, Any] | None = None
) -> Consumer:
    """A consumer with Kafka's properties; `extra` has librdkafka's own. Raises as `make_client`."""
    consumer: Consumer = make_client(
        Consumer, {**consumer_config(properties), **(extra or {})}, reporter
    )
    return consumer


def make_share_consumer(properties: Mapping[str, str], reporter: Reporter) -> ShareConsumer:
    """A share consumer with Kafka's properties. It acknowledges explicitly. See `make_client`."""
    try:
        from confluent_kafka import ShareConsumer
    except ImportError as error:
        raise ConfigError("Share groups need confluent-kafka 2.16 or later") from error
    config = {
        **share_consumer_config(properties),
        "share.acknowledgement.mode": "explicit",
        "log_level": _ERRORS_ONLY,
    }
    consumer: ShareConsumer = make_client(ShareConsumer, config, reporter)
    return consumer


def poll_records(consumer: ShareConsumer, limit_s: float) -> Sequence[Message]:
    """Poll a share consumer once: its records, with errors among them.

    Raises:
        ApiError: the consumer cannot continue.
    """
    try:
        return consumer.poll(limit_s) or ()
    except KafkaException as error:
        reason = error.args[0]
        text = reason.str().removesuffix(": ")  # without a message of the broker, it ends there
        code = _lasting_error(reason) or ErrorCode.UNKNOWN_SERVER_ERROR
        raise ApiError(code, f"{text}: {reason.name()}") from error


def subscribe(consumer: Consumer | ShareConsumer, topics: list[str], **callbacks: Any) -> None:
    """Subscribe a consumer to topics.

    Raises:
        ApiError: INVALID_TOPIC_EXCEPTION. librdkafka would wait for such a topic for ever.
    """
    for topic in topics:
        validate_topic_name(topic)
    consumer.subscribe(topics, **callbacks)


def make_client(
    client: Callable[..., ClientT], config: Mapping[str, Any], reporter: Reporter
) -> ClientT:
    """Create a client. An unknown property is dropped with a warning, as in Java.

    Raises:
        ConfigError: a value is not allowed.
    """
    null_logger = logging.Logger("librdkafka")
    null_logger.addHandler(logging.NullHandler())
    more = {"error_cb": reporter.error, "logger": null_logger}
    return create_client(lambda known: client(known | more), config, reporter.report_once)
