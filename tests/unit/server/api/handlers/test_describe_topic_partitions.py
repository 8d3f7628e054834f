"""DescribeTopicPartitions: pages of partitions, each page after the one before."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.api.handlers import describe_topic_partitions
from kafkapy.server.requests.turns import ROW_UNITS, run_now
from tests.harness.cores.request_contexts import request_context
from tests.harness.cores.server_parts import Parts


class Denies:
    """Allows everything but to describe one topic."""

    def __init__(self, name: str) -> None:
        self._name = name

    def is_allowed(self, *need: Any) -> bool:
        return need[-1] != self._name


def ask(
    parts: Parts, *names: str, limit: int = 2000, cursor: Cursor | None = None, denied: str = ""
) -> DescribeTopicPartitionsResponse:
    context = request_context(75, 0)
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=cursor,
    )
    authorizer: Any = Denies(denied) if denied else None
    work = describe_topic_partitions.handle(
        parts.cluster, Authorization(authorizer), context, request
    )
    return run_now(work)


def rows(response: DescribeTopicPartitionsResponse) -> list[tuple[str | None, int, int]]:
    return [(topic.name, topic.error_code, len(topic.partitions)) for topic in response.topics]


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    made = Parts(tmp_path)
    made.announce("b", "a", "c")
    return made


def test_all_topics_by_name(parts: Parts) -> None:
    response = ask(parts)
    assert rows(response) == [("a", 0, 1), ("b", 0, 1), ("c", 0, 1)]
    assert response.next_cursor is None
    partition = response.topics[0].partitions[0]
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])


def test_a_page_ends_with_a_cursor_and_the_next_one_begins_there(parts: Parts) -> None:
    first = ask(parts, limit=2)
    assert rows(first) == [("a", 0, 1), ("b", 0, 1)]
    assert first.next_cursor is not None
    assert (first.next_cursor.topic_name, first.next_cursor.partition_index) == ("c", 0)
    second = ask(parts, limit=2, cursor=Cursor(topic_name="c", partition_index=0))
    assert rows(second) == [("c", 0, 1)]
    assert second.next_cursor is None


def test_a_cursor_points_into_a_topic(parts: Parts) -> None:
    response = ask(parts, "a", "b", cursor=Cursor(topic_name="a", partition_index=1))
    assert rows(response) == [("a", 0, 0), ("b", 0, 1)]
    with pytest.raises(ApiError, match="cursor partition must be valid"):
        ask(parts, cursor=Cursor(topic_name="a", partition_index=-1))


def test_a_topic_that_is_not_there_or_not_allowed_has_an_error(parts: Parts) -> None:
    unknown, invalid = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION
    assert rows(ask(parts, "x", "y z")) == [("x", unknown, 0), ("y z", invalid, 0)]
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert rows(ask(parts, "a", "b", denied="a")) == [("b", 0, 1), ("a", refused, 0)]
    assert rows(ask(parts, denied="a")) == [("b", 0, 1), ("c", 0, 1)]


@pytest.mark.parametrize("is_denied", [False, True])
def test_a_request_for_many_topics_that_it_does_not_describe_does_not_stop_other_clients(
    parts: Parts, is_denied: bool
) -> None:
    """1 MB of unknown names was handled in one step of a second."""
    request = DescribeTopicPartitionsRequest(
        topics=[TopicRequest(name=f"{index}") for index in range(1000)]
    )
    nobody: Any = SimpleNamespace(is_allowed=lambda *_: False)
    authorization = Authorization(nobody if is_denied else None)
    context = request_context(75, 0)
    work = describe_topic_partitions.handle(parts.cluster, authorization, context, request)
    assert list(work) == [ROW_UNITS] * 1000
