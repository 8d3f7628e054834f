"""A new leader hides its end while its high watermark lags behind its epoch's start (KIP-207)."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any, cast

import pytest

from kafkapy.common.cluster_state import StopReplicaCommand, StopReplicaPartition
from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.codec import Codec
from kafkapy.server.api.handlers import list_offsets
from kafkapy.server.api.handlers.list_offsets import EARLIEST, LATEST, MAX_TIMESTAMP
from kafkapy.server.requests.outcomes import ThreadCall
from kafkapy.server.requests.turns import run_now
from tests.harness.cores.request_contexts import request_context
from tests.harness.cores.server_parts import Parts
from tests.harness.cores.znodes import run


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    """Broker 1 leads epoch 1, which began at offset 4; only what is below 2 is known committed."""
    made = Parts(tmp_path)
    made.announce("t")
    made.lead(isr=(1, 2))
    for timestamp in (10, 20, 30, 40):
        record = RecordData(None, b"v", timestamp, [])
        made.replicas.append("t", 0, build_batch([record]), 1, 11)
    made.fetch_as_follower(made.replicas.get("t", 0), 2)
    made.lead(leader=2, isr=(1, 2), leader_epoch=1, partition_epoch=1)
    made.lead(isr=(1, 2), leader_epoch=2, partition_epoch=2)
    return made


def look_up(
    parts: Parts, timestamp: int, version: int = 9, replica_id: int = -1, isolation: int = 0
) -> tuple[ErrorCode, int]:
    rows = [ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
    request = ListOffsetsRequest(
        replica_id=replica_id,
        isolation_level=isolation,
        topics=[ListOffsetsTopic(name="t", partitions=rows)],
    )
    context = request_context(2, version)
    [row] = (
        run_now(list_offsets.handle(parts.replicas, parts.clock, context, request))
        .topics[0]
        .partitions
    )
    return ErrorCode(row.error_code), row.offset


def offsets_v0(
    parts: Parts, timestamp: int, most: int = 9, replica_id: int = -1
) -> tuple[ErrorCode, list[int]]:
    rows = [
        ListOffsetsPartition(partition_index=0, timestamp=timestamp, max_num_offsets=most)
        for _ in range(2)
    ]
    topics = [ListOffsetsTopic(name="t", partitions=rows)]
    context = request_context(2, 0)
    request = ListOffsetsRequest(replica_id=replica_id, topics=topics)
    answer = run_now(list_offsets.handle(parts.replicas, parts.clock, context, request))
    row, same = answer.topics[0].partitions
    assert row == same, "v0 answers a partition as often as it is named"
    return ErrorCode(row.error_code), row.old_style_offsets


def test_version_0_lists_where_segments_begin_and_the_high_watermark(parts: Parts) -> None:
    parts.replicas.get("t", 0).log.roll(0)
    parts.replicas.append("t", 0, build_batch([RecordData(None, b"v", 50, [])]), 1, 11)
    assert offsets_v0(parts, LATEST, replica_id=2) == (ErrorCode.NONE, [5, 4, 0])
    assert offsets_v0(parts, LATEST) == (ErrorCode.NONE, [2, 0])
    assert offsets_v0(parts, LATEST, 1) == (ErrorCode.NONE, [2])
    assert offsets_v0(parts, LATEST, 0) == (ErrorCode.NONE, [])
    assert offsets_v0(parts, EARLIEST) == (ErrorCode.NONE, [0])
    assert offsets_v0(parts, 0) == (ErrorCode.NONE, [])
    parts.fetch_as_follower(parts.replicas.get("t", 0), 5)
    assert offsets_v0(parts, LATEST, 2) == (ErrorCode.NONE, [5, 4])


def test_version_0_refuses_as_apache_kafka_does(parts: Parts) -> None:
    assert offsets_v0(parts, MAX_TIMESTAMP) == (ErrorCode.UNSUPPORTED_VERSION, [])
    assert offsets_v0(parts, LATEST, -1) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])
    parts.lead(leader=2, isr=(1, 2), leader_epoch=3, partition_epoch=3)
    assert offsets_v0(parts, LATEST) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, [])


def test_the_end_is_not_available_until_the_followers_have_fetched(parts: Parts) -> None:
    assert look_up(parts, LATEST) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
    assert look_up(parts, LATEST, version=4) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    parts.fetch_as_follower(parts.replicas.get("t", 0), 4)
    assert look_up(parts, LATEST) == (ErrorCode.NONE, 4)


def test_what_is_committed_can_be_looked_up_all_the_same(parts: Parts) -> None:
    assert look_up(parts, EARLIEST) == (ErrorCode.NONE, 0)
    assert look_up(parts, 15) == (ErrorCode.NONE, 1)
    assert look_up(parts, 25) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
    assert look_up(parts, MAX_TIMESTAMP) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)


def test_followers_are_told_the_log_end(parts: Parts) -> None:
    assert look_up(parts, LATEST, replica_id=2) == (ErrorCode.NONE, 4)


def test_an_open_transaction_does_not_make_the_end_unavailable(tmp_path: Path) -> None:
    unverified = {"transaction.partition.verification.enable": "false"}
    parts = Parts(tmp_path, properties=unverified)
    parts.lead()
    transactional = build_batch(
        [RecordData(None, b"v", 5, [])],
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    parts.replicas.append("t", 0, transactional, 1, 11)
    parts.lead(leader_epoch=1, partition_epoch=1)
    assert look_up(parts, LATEST, isolation=1) == (ErrorCode.NONE, 0)


def test_only_debuggers_may_ask_a_follower(parts: Parts) -> None:
    parts.lead(leader=2, isr=(1, 2), leader_epoch=3, partition_epoch=3)
    assert look_up(parts, LATEST) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert look_up(parts, LATEST, replica_id=-2) == (ErrorCode.NONE, 4)


@pytest.mark.parametrize(("timestamp", "version"), [(-5, 9), (-6, 11)])
def test_without_tiered_storage_there_is_no_such_offset(
    parts: Parts, timestamp: int, version: int
) -> None:
    assert look_up(parts, timestamp, version) == (ErrorCode.NONE, -1)
    assert look_up(parts, timestamp, version - 1)[0] is ErrorCode.UNSUPPORTED_VERSION


def test_a_compressed_batch_is_searched_by_another_thread(parts: Parts) -> None:
    """500,000 records in 50 KB kept the loop for a second."""
    rows = [RecordData(None, b"v", timestamp, []) for timestamp in (50, 60)]
    parts.replicas.append("t", 0, build_batch(rows, codec=Codec.GZIP), 1, 11)
    parts.fetch_as_follower(parts.replicas.get("t", 0), 6)
    for timestamp in (60, MAX_TIMESTAMP):
        wanted = [ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=wanted)])
        context = request_context(2, 9)
        work = list_offsets.handle(parts.replicas, parts.clock, context, request)
        assert isinstance(next(work), ThreadCall)
        assert look_up(parts, timestamp) == (ErrorCode.NONE, 5)
    assert look_up(parts, 50) == (ErrorCode.NONE, 4)


def finish(work: Any, thread_result: Future[Any]) -> ListOffsetsResponse:
    """The response of a handler's work that has waited for a thread."""
    try:
        work.send(thread_result)
        while True:
            next(work)
    except StopIteration as end:
        return cast(ListOffsetsResponse, end.value)


def test_a_topic_that_is_deleted_during_a_search_takes_no_directory_offline(parts: Parts) -> None:
    rows = [RecordData(None, b"v", timestamp, []) for timestamp in (50, 60)]
    parts.replicas.append("t", 0, build_batch(rows, codec=Codec.GZIP), 1, 11)
    parts.fetch_as_follower(parts.replicas.get("t", 0), 6)
    wanted = [ListOffsetsPartition(partition_index=0, timestamp=60)]
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=wanted)])
    work = list_offsets.handle(parts.replicas, parts.clock, request_context(2, 9), request)
    call = next(work)
    assert isinstance(call, ThreadCall)
    deletion = StopReplicaCommand(1, 1, 1, [StopReplicaPartition("t", 0, 3, True)])
    assert not any(run(parts.replicas.stop_replicas(deletion)).partition_errors.values())
    found: Future[Any] = Future()
    found.set_result(call.function())
    [row] = finish(work, found).topics[0].partitions
    assert parts.replicas.log_manager.offline_log_dirs == []
    assert row.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
