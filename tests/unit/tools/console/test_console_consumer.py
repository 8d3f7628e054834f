"""Reading over librdkafka: where it starts, what is committed, when it stops."""

from __future__ import annotations

import io
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from kafkapy.common.errors import ApiError, ConfigError
from kafkapy.tools.console import console_consumer
from kafkapy.tools.console.console_consumer import ConsoleConsumer, Source, print_messages
from kafkapy.tools.console.formatters import make_formatter
from kafkapy.tools.console.message_formatter import Message


class Raw:
    """librdkafka's message."""

    def __init__(self, offset: int, error: Any = None, timestamp: Any = None) -> None:
        self._offset = offset
        self._error = error
        self._timestamp = timestamp or (TIMESTAMP_CREATE_TIME, 5)

    def error(self) -> Any:
        return self._error

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 1

    def offset(self) -> int:
        return self._offset

    def timestamp(self) -> Any:
        return self._timestamp

    def key(self) -> bytes:
        return b"k"

    def value(self) -> bytes:
        return b"v"

    def headers(self) -> None:
        return None


class OddlyNamed(Raw):
    """A message with a header whose name is not UTF-8."""

    def headers(self) -> None:
        raise SystemError("returned a result with an exception set") from UnicodeDecodeError(
            "utf-8", b"\xff", 0, 1, "invalid start byte"
        )


class FakeConsumer:
    """librdkafka's consumer: gives `answers` to polls, then None after the timeout."""

    def __init__(self, config: dict[str, Any], clock: SimpleNamespace) -> None:
        self.config = config
        self.clock = clock
        self.answers: list[Any] = []
        self.subscribed: list[str] = []
        self.assigned: list[tuple[str, int, int]] = []
        self.stored: list[int] = []
        self.closed = False
        self.looks = 0
        self.answers_looks = False
        self.topics: list[str] = []

    def subscribe(self, topics: list[str]) -> None:
        self.subscribed = topics

    def assign(self, partitions: list[Any]) -> None:
        self.assigned = [(p.topic, p.partition, p.offset) for p in partitions]

    def poll(self, timeout: float) -> Any:
        if self.answers:
            return self.answers.pop(0)
        self.clock.now_s += timeout
        return None

    def list_topics(self, timeout: float) -> SimpleNamespace:
        self.looks += 1
        if not self.answers_looks:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        return SimpleNamespace(topics=dict.fromkeys(self.topics))

    def store_offsets(
        self, message: Raw | None = None, offsets: Sequence[TopicPartition] = ()
    ) -> None:
        self.stored += [message.offset()] if message else [each.offset for each in offsets]

    def close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock of the consumers, which only a poll without an answer advances."""
    clock = SimpleNamespace(now_s=0.0)
    monkeypatch.setattr(console_consumer, "time", SimpleNamespace(monotonic=lambda: clock.now_s))
    monkeypatch.setattr(console_consumer, "Consumer", lambda config: FakeConsumer(config, clock))
    return clock


def consumer_of(
    source: Source, said: list[str] | None = None, **properties: str
) -> tuple[ConsoleConsumer, FakeConsumer]:
    made = ConsoleConsumer(source, {"group.id": "g", **properties}, (said or []).append)
    return made, made._consumer  # type: ignore[return-value]


def read(consumer: ConsoleConsumer) -> list[Message]:
    found = []
    with pytest.raises(TimeoutError):  # noqa: PT012
        for message in consumer.messages(0, lambda: None):
            found.append(message)
    return found


def test_what_is_read() -> None:
    assert consumer_of(Source(topic="t"))[1].subscribed == ["t"]
    assert consumer_of(Source(topic="t", partition=2, offset=7))[1].assigned == [("t", 2, 7)]


@pytest.mark.parametrize("partition", [None, 0])
def test_a_name_that_no_topic_can_have_is_refused(partition: int | None) -> None:
    with pytest.raises(ApiError, match="Topic name is invalid: 'a b' contains"):
        consumer_of(Source(topic="a b", partition=partition))


def test_topics_that_match_are_looked_for_while_it_reads() -> None:
    consumer, fake = consumer_of(Source(include="a|b"))
    fake.answers_looks, fake.topics = True, ["a", "c"]
    assert read(consumer) == []
    assert fake.subscribed == ["a"]
    fake.topics = ["b"]
    fake.answers = [Raw(-1, KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))]
    assert read(consumer) == []
    assert fake.subscribed == ["b"]


@pytest.mark.parametrize("word", ["true", "TRUE"])
def test_only_what_was_handed_out_is_committed(word: str) -> None:
    consumer, fake = consumer_of(Source(topic="t"), **{"enable.auto.commit": word})
    fake.answers = [Raw(4), Raw(5)]
    assert fake.config["enable.auto.offset.store"] == "false"
    messages = consumer.messages(None, lambda: None)
    assert next(messages).offset == 4
    assert fake.stored == [4]
    consumer.close()
    assert fake.closed


def test_the_time_that_the_reader_of_the_output_takes_does_not_count(
    clock: SimpleNamespace,
) -> None:
    """Behind a pipe whose reader paused for longer, it ended and left records."""
    consumer, fake = consumer_of(Source(topic="t"))
    fake.answers = [Raw(4), None, None, Raw(5)]

    def flush() -> None:
        clock.now_s += 60

    messages = consumer.messages(1000, flush)
    assert next(messages).offset == 4
    clock.now_s += 60
    assert next(messages).offset == 5


def test_what_could_not_be_written_is_not_committed() -> None:
    """A full disk took up to 8 KB of records from the group."""
    consumer, fake = consumer_of(Source(topic="t"))
    fake.answers = [Raw(4), None, Raw(5), Raw(6)]
    messages = consumer.messages(None, lambda: None)
    assert [next(messages).offset for _ in range(3)] == [4, 5, 6]
    consumer.reset_unwritten_offsets()
    assert fake.stored == [4, 5, 6, 5]


@pytest.mark.parametrize(
    ("source", "properties"),
    [
        (Source(topic="t"), {"enable.auto.commit": "false"}),
        (Source(topic="t", partition=0), {}),
    ],
)
def test_nothing_is_committed_without_a_group(source: Source, properties: dict[str, str]) -> None:
    consumer, fake = consumer_of(source, **properties)
    fake.answers = [Raw(4)]
    assert len(read(consumer)) == 1
    assert fake.stored == []


PATIENCE = {"default.api.timeout.ms": "1", "bootstrap.servers": "b:1"}


def test_without_any_broker_it_gives_up() -> None:
    consumer, _ = consumer_of(Source(topic="t"), **PATIENCE)
    with pytest.raises(ApiError, match="No broker of b:1 answered within 1 ms"):
        next(consumer.messages(None, lambda: None))


def test_once_a_broker_has_answered_it_waits() -> None:
    consumer, fake = consumer_of(Source(topic="t"), **PATIENCE)
    fake.answers_looks = True
    with pytest.raises(TimeoutError):
        next(consumer.messages(200, lambda: None))
    assert fake.looks == 1


def test_a_record_is_an_answer() -> None:
    consumer, fake = consumer_of(Source(topic="t"), **PATIENCE)
    fake.answers = [Raw(1)]
    assert [message.offset for message in read(consumer)] == [1]
    assert fake.looks == 0


def test_a_message() -> None:
    consumer, fake = consumer_of(Source(topic="t"))
    fake.answers = [Raw(4), Raw(5, timestamp=(TIMESTAMP_NOT_AVAILABLE, -1))]
    first, second = read(consumer)
    assert first == Message("t", 1, 4, 5, "CreateTime", b"k", b"v", ())
    assert second.timestamp_type is None


def test_headers_that_cannot_be_read_matter_where_they_are_shown() -> None:
    consumer, fake = consumer_of(Source(topic="t"))
    fake.answers = [OddlyNamed(4)]
    (message,) = read(consumer)
    assert make_formatter(None, {"print.key": "true"}).format(message) == b"k\tv\n"
    with pytest.raises(ConfigError, match="t-1 at offset 4: the name of a header is not UTF-8"):
        make_formatter(None, {"print.headers": "true"}).format(message)


def test_errors_are_told_once_and_reading_goes_on() -> None:
    said: list[str] = ["start"]
    consumer, fake = consumer_of(Source(topic="t"), said)
    unknown = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
    fake.answers = [Raw(0, unknown), Raw(0, unknown), Raw(4)]
    assert [m.offset for m in read(consumer)] == [4]
    assert said == ["start", f"WARN {unknown.str()}"]


def test_a_fatal_error_ends_it() -> None:
    consumer, fake = consumer_of(Source(topic="t"))
    fake.answers = [Raw(0, KafkaError(KafkaError._FATAL, "fenced"))]
    with pytest.raises(ApiError, match="fenced"):
        next(consumer.messages(None, lambda: None))


def test_output_is_flushed_before_a_wait() -> None:
    consumer, fake = consumer_of(Source(topic="t"))
    fake.answers = [Raw(1), Raw(2), None, Raw(3)]
    idle: list[int] = []
    messages = consumer.messages(None, lambda: idle.append(1))
    for expected in (1, 2):
        assert next(messages).offset == expected
    assert idle == []
    assert next(messages).offset == 3
    assert idle == [1]


def printed(limit: int | None, skip: bool) -> tuple[bytes, int, list[str]]:
    def render(message: Message) -> bytes:
        if message.offset == 1:
            raise ConfigError("odd")
        return b"%d\n" % message.offset

    out, counted, said = io.BytesIO(), [0], []
    records = (Message("t", 0, n, 0, None, None, None, ()) for n in range(4))

    def count() -> None:
        counted[0] += 1

    print_messages(
        records,
        render,
        out,
        max_messages=limit,
        skip_errors=skip,
        warn=said.append,
        count=count,
    )
    return out.getvalue(), counted[0], said


def test_a_limit_counts_records_whether_they_could_be_shown_or_not() -> None:
    assert printed(3, skip=True)[:2] == (b"0\n2\n", 3)
    assert printed(1, skip=False)[:2] == (b"0\n", 1)
    assert printed(0, skip=False)[:2] == (b"", 0)
    assert printed(-5, skip=False)[:2] == (b"", 0)
    assert printed(None, skip=True)[1] == 4


def test_a_record_that_cannot_be_shown_ends_it_or_is_told() -> None:
    assert printed(None, skip=True)[2] == [
        "ERROR Error processing message, skipping this message: odd"
    ]
    with pytest.raises(ConfigError, match="odd"):
        printed(None, skip=False)


def test_what_the_broker_does_not_allow_ends_it() -> None:
    consumer, fake = consumer_of(Source(topic="t"))
    fake.answers = [Raw(0, KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))]
    with pytest.raises(ApiError, match="Topic authorization failed"):
        next(consumer.messages(0, lambda: None))
