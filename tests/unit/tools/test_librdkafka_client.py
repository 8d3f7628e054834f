"""Making librdkafka clients: unknown properties, bad values, repeated complaints."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.tools.librdkafka_client import (
    Reporter,
    ToolProducer,
    make_client,
    make_producer,
    poll_records,
    raise_if_final,
    subscribe,
)


def make_tiny_producer() -> ToolProducer:
    """A producer with a queue of 1 KiB."""
    return make_client(ToolProducer, {"queue.buffering.max.kbytes": "1"}, Reporter([].append, {}))


@pytest.mark.parametrize(
    ("record", "size"),
    [
        ({"value": b"x" * 2000}, 2086),
        ({"value": "x" * 2000, "key": b"kk", "headers": [("h", b"1"), ("g", None)]}, 2095),
    ],
)
def test_a_record_larger_than_the_buffer_fails_at_once(record: Any, size: int) -> None:
    """The queue has no room for it even when it is empty: the tools retried for ever."""
    with pytest.raises(KafkaException) as caught:
        make_tiny_producer().produce("t", **record)
    assert caught.value.args[0].str() == (
        f"The message is {size} bytes when serialized which is larger than the total memory buffer"
        " you have configured with the buffer.memory configuration."
    )


def test_a_record_that_will_fit_later_is_not_refused() -> None:
    producer = make_tiny_producer()
    producer.produce("t", b"x" * 1000)
    with pytest.raises(BufferError):
        producer.produce("t", b"x" * 1000)
    producer.purge()


def test_unknown_properties_are_dropped_with_a_warning() -> None:
    said: list[str] = []
    config = {"nope.a": "1", "nope.b": "2"}
    make_client(Producer, config, Reporter(said.append, {}))
    assert said == [
        f"WARN The configuration '{name}' was supplied but is not known."
        for name in ("nope.a", "nope.b")
    ]


def test_a_bad_value_is_named() -> None:
    with pytest.raises(ConfigError, match=r"compression\.type|compression\.codec"):
        make_client(Producer, {"compression.type": "zip"}, Reporter([].append, {}))


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("acks", "2", "String must be one of: all, -1, 0, 1"),
        ("acks", "ALL", "String must be one of: all, -1, 0, 1"),
        ("linger.ms", "-5", "Value must be at least 0"),
        ("batch.size", "-1", "Value must be at least 0"),
        ("retries", "-1", "Value must be at least 0"),
        ("max.block.ms", "-4", "Value must be at least 0"),
        ("send.buffer.bytes", "-2", "Value must be at least -1"),
        ("request.timeout.ms", "1.5", r"Not a number of type INT \(32-bit integer\)"),
    ],
)
def test_a_producer_refuses_what_javas_refuses(name: str, value: str, reason: str) -> None:
    """With acks=2 every record failed, and the tool exited with 0; librdkafka takes the others."""
    said = f"Invalid value {value} for configuration {name}: {reason}"
    with pytest.raises(ConfigError, match=f"^{said}$"):
        make_producer({"bootstrap.servers": "localhost:1", name: value}, Reporter([].append, {}))


def test_a_producer_has_the_values_that_javas_has() -> None:
    properties = {"acks": " all ", "linger.ms": "0", "send.buffer.bytes": "-1", "retries": "3"}
    make_producer({"bootstrap.servers": "localhost:1", **properties}, Reporter([].append, {}))


@pytest.mark.parametrize(
    ("servers", "error"),
    [
        ("localhost:1,localhost:84928", "Invalid url in bootstrap.servers: localhost:84928"),
        (",", "No resolvable bootstrap urls given in bootstrap.servers"),
    ],
)
def test_bootstrap_servers_are_those_that_admin_tools_accept(servers: str, error: str) -> None:
    """librdkafka connected to another port, 84928 - 65536."""
    with pytest.raises(ConfigError) as caught:
        make_client(Consumer, {"bootstrap.servers": servers}, Reporter([].append, {}))
    assert str(caught.value) == error


def test_a_lone_surrogate_is_refused() -> None:
    # In a process that it would end, this test would be the last.
    with pytest.raises(ConfigError, match=r"'group\.id': a lone surrogate"):
        make_client(
            Consumer,
            {"group.id": "\ud800", "bootstrap.servers": "localhost:1"},
            Reporter(print, {}),
        )


def test_a_consumer_ends_by_an_error_of_which_librdkafka_says_only_that_it_is_fatal() -> None:
    """Fenced at a heartbeat: a tool that read on would wait for ever."""
    with pytest.raises(ApiError, match="fenced"):
        raise_if_final(KafkaError(KafkaError._FATAL, "Fatal error: Broker: Static consumer fenced"))


def test_each_complaint_is_told_once() -> None:
    said: list[str] = []
    reporter = Reporter(said.append, {})
    for _ in range(3):
        reporter.error(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    reporter.report_once("other")
    assert len(said) == 2


def test_a_refused_login_ends_the_call_that_serves_it() -> None:
    said: list[str] = []
    refused = KafkaError(KafkaError._AUTHENTICATION, "Invalid username or password")
    with pytest.raises(ApiError, match="Invalid username or password") as error:
        Reporter(said.append, {}).error(refused)
    assert error.value.code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert said == []


def test_who_is_patient_waits_for_the_login_to_be_right() -> None:
    said: list[str] = []
    Reporter(said.append, {}, retries_authentication=True).error(
        KafkaError(KafkaError._AUTHENTICATION, "refused")
    )
    assert said == ["WARN refused"]


def test_only_counts_and_times_make_no_new_complaint() -> None:
    said: list[str] = []
    reporter = Reporter(said.append, {})
    for text in (
        "b:1: Connect failed: refused (after 0ms in state CONNECT)",
        "1/1 brokers are down",
        "b:1: Connect failed: refused (after 2ms in state CONNECT, 530 identical error(s))",
        "0/2 brokers are down",
        "b:2: Connect failed: refused (after 0ms in state CONNECT)",
    ):
        reporter.report_once(text)
    assert said == [
        "b:1: Connect failed: refused (after 0ms in state CONNECT)",
        "1/1 brokers are down",
        "b:2: Connect failed: refused (after 0ms in state CONNECT)",
    ]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KafkaError(KafkaError._FATAL, "fenced", fatal=True), ErrorCode.UNKNOWN_SERVER_ERROR),
        (
            KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED),
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ),
        (
            KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED),
            ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ),
        *(
            (KafkaError(code.value), code)
            for code in (
                ErrorCode.INVALID_SESSION_TIMEOUT,
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
                ErrorCode.INVALID_GROUP_ID,
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                ErrorCode.UNSUPPORTED_ASSIGNOR,
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                ErrorCode.CORRUPT_MESSAGE,
            )
        ),
        (KafkaError(KafkaError._BAD_MSG, "failed CRC32C check"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_errors_that_end_a_consumer(error: KafkaError, code: ErrorCode) -> None:
    with pytest.raises(ApiError) as caught:
        raise_if_final(error)
    assert (caught.value.code, caught.value.message) == (code, error.str())


def test_a_reader_with_reset_none_and_no_valid_offset_does_not_wait_for_ever() -> None:
    with pytest.raises(ApiError, match="no previously committed offset"):
        raise_if_final(
            KafkaError(KafkaError._AUTO_OFFSET_RESET, "no previously committed offset available")
        )


@pytest.mark.parametrize("text", ["ShareFetch failed for t [1]: ", "ShareFetch failed for t [1]"])
def test_an_error_of_a_share_consumer_has_its_reason(text: str) -> None:
    """The reason was missing, and a damaged batch was called a bug in kafkapy."""

    def poll(limit_s: float) -> None:
        raise KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, text))

    consumer: Any = SimpleNamespace(poll=poll)
    with pytest.raises(ApiError) as caught:
        poll_records(consumer, 1)
    assert caught.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert caught.value.message == "ShareFetch failed for t [1]: TOPIC_AUTHORIZATION_FAILED"


def test_errors_that_pass() -> None:
    raise_if_final(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))


@pytest.mark.parametrize("topic", ["", "a b", "^a", "x" * 250])
def test_a_name_that_no_topic_can_have_is_refused(topic: str) -> None:
    """A consumer waited for such a topic for ever; librdkafka reads `^a` as an expression."""
    consumer = make_client(Consumer, {"group.id": "g"}, Reporter([].append, {}))
    with pytest.raises(ApiError, match="Topic name is invalid: ") as caught:
        subscribe(consumer, [topic])
    consumer.close()
    assert caught.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
