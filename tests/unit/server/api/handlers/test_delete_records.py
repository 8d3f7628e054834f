"""DeleteRecords is over when every live replica has deleted the records, or its time is up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.headers import RequestHeader
from kafkapy.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafkapy.replication.delayed_fetch import FetchParams
from kafkapy.replication.fetch_session import FetchPartition
from kafkapy.replication.partition import Partition
from kafkapy.server.api.handlers import delete_records
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.requests.outcomes import Pending
from kafkapy.server.requests.turns import run_now
from tests.harness.cores.server_parts import Parts
from tests.harness.storage.partitions import TOPIC_ID, batch


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    made = Parts(tmp_path)
    made.announce("t")
    return made


def delete(parts: Parts, *offsets: int, topic: str = "t") -> Any:
    rows = [DeleteRecordsPartition(partition_index=i, offset=o) for i, o in enumerate(offsets)]
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=rows)], timeout_ms=3000
    )
    header = RequestHeader(21, 2, 1, "test")
    context = RequestContext(header, "127.0.0.1", "PLAINTEXT")
    return run_now(delete_records.handle(parts.replicas, parts.clock, context, request))


def rows_of(response: Any) -> list[tuple[ErrorCode, int]]:
    [topic] = response.topics
    return [(ErrorCode(row.error_code), row.low_watermark) for row in topic.partitions]


def replicated(parts: Parts, index: int = 0) -> Partition:
    """A leader with three records that broker 2 has."""
    partition = parts.lead(index=index, isr=(1, 2))
    for _ in range(3):
        parts.replicas.append("t", index, batch(), 1, 11)
    follower_begins_at(parts, 0, index)
    return partition


def follower_begins_at(parts: Parts, offset: int, index: int = 0) -> None:
    wanted = FetchPartition("t", TOPIC_ID, index, 3, 1, follower_log_start_offset=offset)
    parts.fetch_reader.fetch(FetchParams(2, 0, 1, 1, 0, 17), [wanted], lambda rows: None)


def test_alone_a_leader_answers_at_once(parts: Parts) -> None:
    parts.lead()
    for _ in range(3):
        parts.replicas.append("t", 0, batch(), 1, 11)
    assert rows_of(delete(parts, 2)) == [(ErrorCode.NONE, 2)]
    assert rows_of(delete(parts, -1)) == [(ErrorCode.NONE, 3)]
    assert rows_of(delete(parts, 4)) == [(ErrorCode.OFFSET_OUT_OF_RANGE, -1)]


def test_it_waits_for_the_live_followers_of_every_partition(parts: Parts) -> None:
    replicated(parts, 0)
    replicated(parts, 1)
    pending = delete(parts, 2, -1)
    assert isinstance(pending, Pending)
    follower_begins_at(parts, 2, 0)
    assert not pending.done
    follower_begins_at(parts, 3, 1)
    assert rows_of(pending.response) == [(ErrorCode.NONE, 2), (ErrorCode.NONE, 3)]


def test_a_dead_follower_is_not_waited_for(parts: Parts) -> None:
    replicated(parts)
    parts.replicas.partitions["t"][0].is_live = lambda broker_id: broker_id == 1
    assert rows_of(delete(parts, 1)) == [(ErrorCode.NONE, 1)]


def test_when_the_time_is_up_each_row_says_how_far_it_came(parts: Parts) -> None:
    replicated(parts, 0)
    replicated(parts, 1)
    pending = delete(parts, 2, 2)
    follower_begins_at(parts, 2, 1)
    parts.clock.now_ms += 3000
    parts.timers.fire()
    assert rows_of(pending.response) == [(ErrorCode.REQUEST_TIMED_OUT, 0), (ErrorCode.NONE, 2)]


def test_one_partitions_error_does_not_keep_the_others_from_waiting(parts: Parts) -> None:
    replicated(parts, 0)
    pending = delete(parts, 2, 2)
    follower_begins_at(parts, 2)
    assert rows_of(pending.response) == [
        (ErrorCode.NONE, 2),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ]


def test_internal_topics_are_not_touched(parts: Parts) -> None:
    response = delete(parts, 0, topic="__consumer_offsets")
    assert rows_of(response) == [(ErrorCode.INVALID_TOPIC_EXCEPTION, -1)]
