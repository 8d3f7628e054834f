"""Summary of a poll, by partition; the live tests cover whole runs."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from confluent_kafka import KafkaError

from kafkapy.common.errors import ApiError
from kafkapy.tools.perf.verifiable_consumer import VerifiableConsumer, record_fields, summarise


class Record(NamedTuple):
    """A `confluent_kafka.Message`."""

    place: tuple[str, int, int]

    def topic(self) -> str:
        return self.place[0]

    def partition(self) -> int:
        return self.place[1]

    def offset(self) -> int:
        return self.place[2]

    def key(self) -> bytes | None:
        return None

    def value(self) -> bytes:
        return b"\xffv"

    def error(self) -> None:
        return None


class TenThousand:
    """A `confluent_kafka.Consumer` that has records for whoever asks; keeps what is committed."""

    def __init__(self) -> None:
        self.position = 0
        self.committed: list[int] = []

    def subscribe(self, topics: list[str], **callbacks: Any) -> None:
        pass

    def consume(self, count: int, timeout_s: float) -> list[Record]:
        first, self.position = self.position, min(self.position + count, 10_000)
        return [Record(("t", 0, offset)) for offset in range(first, self.position)]

    def commit(self, offsets: list[Any], asynchronous: bool) -> None:
        self.committed += [each.offset for each in offsets]


def test_no_more_is_committed_than_was_asked_for() -> None:
    client: Any = TenThousand()
    counts = []

    def emit(event: str, fields: Any) -> None:
        counts.append(fields.get("count"))

    VerifiableConsumer(client, emit, max_messages=503).run("t")
    assert [count for count in counts if count is not None] == [500, 3]
    assert client.committed == [500, 503]


class Refused(NamedTuple):
    """A `confluent_kafka.TopicPartition` of an answer."""

    error: KafkaError | None


def test_a_commit_that_one_partition_refuses_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    client: Any = TenThousand()
    error = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
    monkeypatch.setattr(client, "commit", lambda **_: [Refused(None), Refused(error)])
    events: dict[str, Any] = {}
    VerifiableConsumer(client, events.__setitem__, max_messages=1).run("t")
    committed = events["offsets_committed"]
    assert (committed["success"], committed["error"]) == (False, error.str())


def test_what_was_read_when_a_signal_came_is_committed() -> None:
    client: Any = TenThousand()
    events: list[str] = []
    consumer = VerifiableConsumer(
        client, lambda event, _: events.append(event), lambda: "record_data" in events, verbose=True
    )
    consumer.run("t")
    assert (consumer.consumed, client.committed) == (500, [500])


def test_partitions_are_summed_up_apart() -> None:
    records: list[Any] = [Record(place) for place in (("t", 1, 5), ("t", 0, 2), ("t", 1, 7))]
    assert summarise(records) == [
        {"topic": "t", "partition": 1, "count": 2, "minOffset": 5, "maxOffset": 7},
        {"topic": "t", "partition": 0, "count": 1, "minOffset": 2, "maxOffset": 2},
    ]


def test_a_record_that_is_no_text_is_shown_nevertheless() -> None:
    record: Any = Record(("t", 0, 1))
    fields = record_fields(record)
    assert fields == {"key": None, "value": "\ufffdv", "topic": "t", "partition": 0, "offset": 1}


class Forbidden(Record):
    """An error of librdkafka instead of records that may not be read."""

    def error(self) -> Any:
        return KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)


def test_what_the_broker_does_not_allow_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    client: Any = TenThousand()
    monkeypatch.setattr(client, "consume", lambda *_: [Forbidden(("", 0, 0))])
    looks = iter([False, True])
    consumer = VerifiableConsumer(client, lambda *_: None, lambda: next(looks))
    with pytest.raises(ApiError, match="Group authorization failed"):
        consumer.run("t")
