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
from tests.harness.storage.batches import patched
from tests.harness.storage.header_count import HeaderCount


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


FORGED = 2**62
BATCHES = 3000


@pytest.fixture
def forged(tmp_path: Path) -> Parts:
    """A log in whose first batch a client claims a timestamp that no record has."""
    made = Parts(tmp_path)
    made.lead()
    batch = build_batch([RecordData(None, b"v" * 40, 5, [])])
    made.replicas.append("t", 0, patched(batch, max_timestamp=FORGED), 1, 11)
    for _ in range(BATCHES - 1):
        made.replicas.append("t", 0, batch, 1, 11)
    return made


def look_up_in_turns(count: HeaderCount, parts: Parts, timestamp: int) -> tuple[ErrorCode, int]:
    wanted = [ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=wanted)])
    work = list_offsets.handle(parts.replicas, parts.clock, request_context(2, 9), request)
    [row] = count.run(work).topics[0].partitions
    return ErrorCode(row.error_code), row.offset


@pytest.mark.parametrize("timestamp", [FORGED - 1, MAX_TIMESTAMP])
def test_a_client_that_claims_a_late_timestamp_stops_no_other_client(
    forged: Parts, timestamp: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search read all headers of the segment in one turn: 50 seconds for 1 GiB."""
    count = HeaderCount(monkeypatch)
    assert look_up_in_turns(count, forged, timestamp) == (ErrorCode.NONE, -1)
    assert max(count.turns) <= 70
    assert len(count.turns) >= 2


def test_claimed_timestamps_in_many_segments_stop_no_other_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = Parts(tmp_path)
    parts.lead()
    batch = patched(build_batch([RecordData(None, b"v", 5, [])]), max_timestamp=FORGED)
    for _ in range(200):
        parts.replicas.append("t", 0, batch, 1, 11)
        parts.replicas.get("t", 0).log.roll(0)
    count = HeaderCount(monkeypatch)
    assert look_up_in_turns(count, parts, 10) == (ErrorCode.NONE, -1)
    assert max(count.turns) <= 70


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
@pytest.mark.parametrize("rolls", [False, True])
def test_a_record_far_behind_a_claimed_timestamp_is_found(
    forged: Parts, codec: Codec, rolls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if rolls:
        forged.replicas.get("t", 0).log.roll(0)
    rows = [RecordData(None, b"v" * 500, timestamp, []) for timestamp in (7, *[10] * 10)]
    forged.replicas.append("t", 0, build_batch(rows, codec=codec), 1, 11)
    count = HeaderCount(monkeypatch)
    assert look_up_in_turns(count, forged, 10) == (ErrorCode.NONE, BATCHES + 1)
    assert look_up_in_turns(count, forged, 7) == (ErrorCode.NONE, BATCHES)
    assert max(count.turns) <= 70


def test_a_record_appended_after_a_truncation_during_a_search_is_found(forged: Parts) -> None:
    """The other records had been searched up to an offset above it."""
    wanted = [ListOffsetsPartition(partition_index=0, timestamp=10)]
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=wanted)])
    work: Any = list_offsets.handle(forged.replicas, forged.clock, request_context(2, 9), request)
    call = next(work)
    assert isinstance(call, ThreadCall)
    forged.replicas.get("t", 0).log.truncate_to(1)
    forged.replicas.append("t", 0, build_batch([RecordData(None, b"v", 10, [])]), 1, 11)
    found: Future[Any] = Future()
    found.set_result(call.function())
    [row] = finish(work, found).topics[0].partitions
    assert (row.error_code, row.offset) == (ErrorCode.NONE, 1)


def test_a_search_past_a_damaged_offset_ends(
    forged: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Base offsets are outside the CRC. The search must not continue at the offset behind it."""
    log = forged.replicas.get("t", 0).log
    position = log.local.offset_metadata(BATCHES - 1).position
    log.segments.active.records.handle().pwritev([bytes(8)], position)
    count = HeaderCount(monkeypatch)
    assert look_up_in_turns(count, forged, 10) == (ErrorCode.NONE, -1)


def test_searches_of_many_partitions_share_the_event_loop(forged: Parts) -> None:
    """Each row counted as 10 microseconds, whatever it read."""
    rows = [RecordData(None, b"", 20, []) for _ in range(300)]
    rows.append(RecordData(None, b"", 30, []))
    forged.replicas.get("t", 0).log.truncate_to(0)
    forged.replicas.append("t", 0, build_batch(rows), 1, 11)
    wanted = [ListOffsetsPartition(partition_index=0, timestamp=30)]
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=wanted)])
    work: Any = list_offsets.handle(forged.replicas, forged.clock, request_context(2, 9), request)
    assert sum(work) > 500
