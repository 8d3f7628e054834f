"""Sending over librdkafka: a full queue, what fails at once, what fails later."""

from __future__ import annotations

import io
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.tools import librdkafka_client
from kafkapy.tools.console.console_producer import ConsoleProducer, lines_of, send_lines
from kafkapy.tools.console.line_reader import Line, LineReader

TOO_LARGE = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)


class Sent:
    """librdkafka's report of a record."""

    def key(self) -> bytes:
        return b"kk"

    def value(self) -> None:
        return None


class FakeProducer:
    """librdkafka's producer: `fail` are raised by the next produce calls."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.fail: list[BaseException | None] = []
        self.produced: list[dict[str, Any]] = []
        self.flushes = 0
        self.late: KafkaError | None = None
        self.unknown_topic: BaseException | None = None
        self.refusal: BaseException | None = None

    def produce(self, topic: str, **record: Any) -> None:
        failure = self.fail.pop(0) if self.fail else None
        if failure is not None:
            raise failure
        self.produced.append({"topic": topic, **record})

    def poll(self, timeout: float) -> int:
        if self.refusal is not None:
            raise self.refusal
        return 0

    def flush(self) -> int:
        self.flushes += 1
        for record in self.produced if self.late else ():
            record["on_delivery"](self.late, Sent())
        return 0

    def list_topics(self, topic: str, timeout: float) -> None:
        if self.unknown_topic is not None:
            raise self.unknown_topic


@pytest.fixture
def sending(monkeypatch: pytest.MonkeyPatch) -> tuple[ConsoleProducer, FakeProducer, list[str]]:
    monkeypatch.setattr(librdkafka_client, "ToolProducer", FakeProducer)
    said: list[str] = []
    producer = ConsoleProducer("t", {"max.block.ms": "5"}, said.append)
    return producer, producer._producer, said


def test_a_record_goes_as_it_is(sending: Any) -> None:
    producer, fake, _ = sending
    producer.send(Line(b"k", None, [("h", b"1")]))
    producer.send(Line(None, b"v", []))
    sent = [(r["topic"], r["key"], r["value"], r["headers"]) for r in fake.produced]
    assert sent == [("t", b"k", None, [("h", b"1")]), ("t", None, b"v", None)]
    assert fake.flushes == 0


def test_sync_waits_for_each(sending: Any) -> None:
    producer, fake, _ = sending
    producer.send(Line(None, b"v", []), sync=True)
    assert fake.flushes == 1


@pytest.mark.parametrize("is_late", [False, True])
def test_sync_ends_with_the_first_failure(sending: Any, is_late: bool) -> None:
    producer, fake, said = sending
    if is_late:
        fake.late = TOO_LARGE
    else:
        fake.fail = [KafkaException(TOO_LARGE)]
    with pytest.raises(ApiError, match="Error when sending message to topic t with key: "):
        producer.send(Line(None, b"v", []), sync=True)
    assert said == []


def test_a_full_queue_is_waited_for(sending: Any) -> None:
    producer, fake, said = sending
    fake.fail = [BufferError(), BufferError(), None]
    producer.send(Line(None, b"v", []))
    assert (len(fake.produced), said) == (1, [])


def test_what_cannot_be_sent_is_told_and_left_out(sending: Any) -> None:
    producer, fake, said = sending
    fake.fail = [KafkaException(TOO_LARGE)]
    producer.send(Line(None, b"12345", []))
    assert fake.produced == []
    assert said == [
        "Error when sending message to topic t with key: null, value: 5 bytes with error: "
        + TOO_LARGE.str()
    ]


def test_what_fails_later_is_told_too(sending: Any) -> None:
    producer, fake, said = sending
    producer.send(Line(b"kk", None, []))
    fake.produced[0]["on_delivery"](TOO_LARGE, Sent())
    assert said[0].startswith(
        "Error when sending message to topic t with key: 2 bytes, value: null"
    )
    fake.produced[0]["on_delivery"](None, Sent())
    assert producer.sent == 1


def test_a_topic_nobody_knows(sending: Any) -> None:
    producer, fake, _ = sending
    producer.wait_for_topic()
    fake.unknown_topic = KafkaException(KafkaError(KafkaError._TRANSPORT))
    with pytest.raises(ApiError, match="Topic t not present in metadata after 5 ms"):
        producer.wait_for_topic()


def test_a_refused_login_is_not_waited_out(sending: Any) -> None:
    producer, fake, _ = sending
    producer._max_block_ms = 3_600_000
    fake.unknown_topic = KafkaException(KafkaError(KafkaError._TRANSPORT))
    fake.refusal = ApiError(ErrorCode.SASL_AUTHENTICATION_FAILED, "refused")
    with pytest.raises(ApiError, match="refused"):
        producer.wait_for_topic()


def test_lines_before_a_bad_one_are_sent_and_waited_for(sending: Any) -> None:
    producer, fake, _ = sending
    reader = LineReader({"parse.key": "true"})
    with pytest.raises(ConfigError, match="line number 2"):
        send_lines(iter([b"k\tv", b"bad", b"k\tw"]), reader, producer, sync=False)
    assert [r["value"] for r in fake.produced] == [b"v"]
    assert fake.flushes == 1


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        (b"", []),
        (b"a", [b"a"]),
        (b"a\n\nb\n", [b"a", b"", b"b"]),
        (b"a\r\nb\rc\n", [b"a", b"b", b"c"]),
        (b"\xff\x85\xe2\x80\xa8\n", [b"\xff\x85\xe2\x80\xa8"]),
    ],
)
def test_line_ends(raw: bytes, lines: list[bytes]) -> None:
    stream = io.BytesIO(raw)
    assert list(lines_of(stream)) == lines
    assert not stream.closed


def test_a_prompt_before_each_read() -> None:
    prompts: list[int] = []
    assert list(lines_of(io.BytesIO(b"a\n"), lambda: prompts.append(1))) == [b"a"]
    assert len(prompts) == 2
