"""Reading the topic: nothing is lost by a read that fails, and a topic that shrank is noticed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from kafkapy.client.metadata import TopicMetadata
from kafkapy.client.offsets import OffsetResult
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.uuid import Uuid
from kafkapy.schemas import schemas_topic
from kafkapy.schemas.records import Record
from kafkapy.schemas.schemas_topic import BEGINNING, SchemasTopic


def message(offset: int, error: int | None = None) -> Any:
    found = None if error is None else KafkaError(error)
    return SimpleNamespace(
        error=lambda: found, offset=lambda: offset, key=lambda: b"k%d" % offset, value=lambda: b"v"
    )


class Cluster:
    """A cluster whose topic has an end."""

    api_timeout_ms = 60_000
    end = 0
    topic_id = Uuid(b"the id of topics")

    def metadata(self, topics: list[str]) -> Any:
        return SimpleNamespace(topics={each: TopicMetadata(each, self.topic_id) for each in topics})

    def list_offsets(self, timestamps: dict[Any, int], isolation_level: int) -> dict[Any, Any]:
        result = OffsetResult(self.end, -1, 0, ErrorCode.NONE)
        return dict.fromkeys(timestamps, result)


@pytest.fixture
def polls(monkeypatch: pytest.MonkeyPatch) -> list[list[Any]]:
    """The messages that the next calls of `consume` return."""
    polls: list[list[Any]] = []
    consumer = SimpleNamespace(assign=lambda _: None, consume=lambda *_: polls.pop(0))
    monkeypatch.setattr(schemas_topic, "Consumer", lambda _: consumer)
    return polls


@pytest.fixture
def cluster() -> Any:
    return Cluster()


def test_records_before_an_error_are_returned_later(polls: list[list[Any]], cluster: Any) -> None:
    topic = SchemasTopic(cluster, {}, "_schemas")
    cluster.end = 2
    polls += [[message(0), message(1, KafkaError.TOPIC_AUTHORIZATION_FAILED)]]
    with pytest.raises(ApiError, match="_schemas-0"):
        topic.read_stable()
    polls += [[message(1)]]
    assert topic.read_stable() == [Record(b"k0", b"v"), Record(b"k1", b"v")]
    assert topic.read_stable() == []


def test_a_read_ends_behind_the_mark_of_a_transaction(polls: list[list[Any]], cluster: Any) -> None:
    """Offset 1 has no record: librdkafka reports the end of the partition at 2."""
    topic = SchemasTopic(cluster, {}, "_schemas")
    cluster.end = 2
    polls += [[message(0)], [], [message(2, KafkaError._PARTITION_EOF)]]
    assert topic.read_all() == [Record(b"k0", b"v")]


def test_a_large_topic_is_read_while_records_come(polls: list[list[Any]], cluster: Any) -> None:
    """Otherwise, the registry does not start on a topic that takes longer than the timeout."""
    topic = SchemasTopic(cluster, {}, "_schemas")
    cluster.end, cluster.api_timeout_ms = 3, 0
    polls += [[message(0)], [message(1)], [message(2)]]
    assert len(topic.read_stable()) == 3
    cluster.end = 4
    polls += [[]]
    with pytest.raises(ApiError, match="_schemas-0: offset 3 was not read in time"):
        topic.read_stable()


def test_nothing_is_decided_on_a_topic_that_lost_records(
    polls: list[list[Any]], cluster: Any
) -> None:
    topic = SchemasTopic(cluster, {}, "_schemas")
    cluster.end = 2
    polls += [[message(0), message(1)]]
    topic.read_all()
    cluster.end = 1
    polls += [[], []]
    assert topic.read_stable() == [], "it may be a leader that does not know the end yet"
    with pytest.raises(ApiError, match=r"was read up to offset 2, and ends at 1$"):
        topic.read_all()


def test_a_topic_that_is_created_again_is_read_from_its_beginning(
    polls: list[list[Any]], cluster: Any
) -> None:
    """Otherwise, the registry serves schemas that are not in the topic, with ids of others."""
    topic = SchemasTopic(cluster, {}, "_schemas")
    cluster.end = 1
    polls += [[message(0)]]
    topic.read_all()
    cluster.topic_id = Uuid(b"another topic id")
    cluster.end = 2
    polls += [[message(0), message(1)]]
    assert topic.read_all() == [BEGINNING, Record(b"k0", b"v"), Record(b"k1", b"v")]


@pytest.mark.parametrize("first", [message(1, KafkaError._PARTITION_EOF), message(1)])
def test_a_topic_that_lost_records_is_read_from_its_beginning(
    first: Any, polls: list[list[Any]], cluster: Any
) -> None:
    """librdkafka goes back to the end that the new leader had, not to the beginning."""
    topic = SchemasTopic(cluster, {}, "_schemas")
    cluster.end = 3
    polls += [[message(0), message(1), message(2)]]
    topic.read_all()
    cluster.end = 1
    polls += [[first, message(2)], [message(0)]]
    assert topic.read_all() == [BEGINNING, Record(b"k0", b"v")]
