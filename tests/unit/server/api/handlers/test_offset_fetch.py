"""A request for many offsets is answered in slices."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.groups.messages import FetchedOffset, FetchOffsetsResult
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.api.handlers import offset_fetch
from kafkapy.server.requests.turns import ROWS_AT_ONCE, run_now
from tests.harness.cores.request_contexts import request_context

MANY = 10_000


def answer(_: object, asked: Any, __: object) -> FetchOffsetsResult:
    return FetchOffsetsResult(offsets={key: FetchedOffset(offset=7) for key in asked.partitions})


def refused(_: object, asked: Any, __: object) -> FetchOffsetsResult:
    return FetchOffsetsResult(ErrorCode.NOT_COORDINATOR)


@pytest.mark.parametrize(
    ("version", "answers", "code"),
    [(7, answer, 0), (8, answer, 0), (1, refused, ErrorCode.NOT_COORDINATOR)],
)
def test_rows_are_looked_up_and_made_a_few_at_a_time(version: int, answers: Any, code: int) -> None:
    indexes = list(range(MANY))
    request = OffsetFetchRequest(
        topics=[OffsetFetchRequestTopic(name="t", partition_indexes=indexes)],
        groups=[
            OffsetFetchRequestGroup(
                group_id="g",
                topics=[OffsetFetchRequestTopics(name="t", partition_indexes=indexes)],
            )
        ],
    )
    context = request_context(9, version)
    groups = Mock(call_now=answers)

    def work() -> Any:
        return offset_fetch.handle(groups, MetadataCache(), Authorization(None), context, request)

    steps = list(work())
    assert max(steps) < 3 * ROWS_AT_ONCE
    assert sum(steps) >= 3 * MANY
    response = run_now(work())
    [topic] = response.groups[0].topics if version == 8 else response.topics
    assert [row.partition_index for row in topic.partitions] == indexes
    assert {row.error_code for row in topic.partitions} == {code}


def test_a_group_that_is_named_often_is_in_memory_once() -> None:
    """A request of 1 MB for all offsets of one group, again and again, ended the broker."""
    found = {TopicPartition("t", index): FetchedOffset(offset=7) for index in range(3)}
    groups = Mock(call_now=Mock(side_effect=lambda *_: FetchOffsetsResult(offsets=dict(found))))
    named = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in "gghg"]
    request = OffsetFetchRequest(groups=named)
    context = request_context(9, 8)
    response: Any = run_now(
        offset_fetch.handle(groups, MetadataCache(), Authorization(None), context, request)
    )
    assert [(row.group_id, len(row.topics[0].partitions)) for row in response.groups] == [
        ("g", 3),
        ("h", 3),
    ]
