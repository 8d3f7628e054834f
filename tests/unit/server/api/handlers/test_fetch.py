"""Fetches with limits that contradict each other, and fetches whose clients have gone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from kafkapy.common.cluster_state import StopReplicaCommand, StopReplicaPartition
from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.headers import RequestHeader
from kafkapy.protocol.messages.fetch import FetchPartition
from kafkapy.protocol.messages.share_fetch import ShareFetchRequest
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.replication.fetch_session import FetchContext, FetchResult
from kafkapy.replication.fetch_session import FetchPartition as SessionRow
from kafkapy.server.api.fetch_answer import FetchResponses
from kafkapy.server.api.handlers.share_fetch import Handler as ShareFetchHandler
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.requests.turns import run_now
from kafkapy.storage.file_records import FileRegion
from tests.harness.cores.hot_path import Client, fetch, produce
from tests.harness.cores.server_parts import Parts
from tests.harness.cores.znodes import run

MANY = 6_000


def test_a_fetch_waits_for_no_more_bytes_than_it_takes(tmp_path: Path) -> None:
    """Kafka: `KafkaApis.handleFetchRequest`, the minimum is at most the maximum."""
    parts = Parts(tmp_path)
    parts.lead(isr=(1,))
    client = Client(parts)
    client.sends(9, produce("t", acks=1))()
    request = fetch(max_wait_ms=30_000)
    request.min_bytes, request.max_bytes = 1 << 20, 1
    [topic] = client.fetches(request).responses
    assert topic.partitions[0].records


def test_a_share_fetch_waits_for_no_more_bytes_than_it_takes() -> None:
    nobody: Any = Mock()
    throttler = Mock()
    handler = ShareFetchHandler(nobody, nobody, nobody, 100, throttler)
    for max_bytes, quota_bytes, most in ((50, None, 50), (200, None, 100), (200, 30, 30)):
        throttler.fetch_bytes_max.return_value = quota_bytes
        request = ShareFetchRequest(min_bytes=1 << 20, max_bytes=max_bytes)
        params = handler._params(nobody, request, "m")
        assert (params.min_bytes, params.max_bytes) == (most, most)


def test_bytes_for_consumers_are_counted(tmp_path: Path) -> None:
    parts = Parts(tmp_path)
    parts.lead(isr=(1,))
    client = Client(parts)
    client.sends(9, produce("t", acks=1))()
    records = client.fetches(fetch()).responses[0].partitions[0].records
    assert isinstance(records, bytes | memoryview)
    counters = parts.metrics.topics["t"]
    assert (counters.bytes_out, counters.fetches) == (len(records), 1)


async def begin_large_fetch(parts: Parts, *, leaves: bool) -> None:
    """A client fetches with more rows than one slice has, and may leave meanwhile."""
    client = Client(parts)
    request = fetch(max_wait_ms=2**31 - 1)
    row = FetchPartition(fetch_offset=0, partition_max_bytes=1)
    request.topics[0].partitions = [row] * MANY
    client.sends(12, request)()
    while not parts.slices.units_max:
        await asyncio.sleep(0)
    if leaves:
        client.connection.connection_lost(None)
    await parts.slices.next_turn()  # behind the slices of the fetch


@pytest.mark.parametrize("leaves", [False, True])
def test_no_fetch_waits_for_a_client_that_left_while_it_was_handled(
    tmp_path: Path, leaves: bool
) -> None:
    parts = Parts(tmp_path)
    parts.lead(isr=(1,))
    asyncio.run(begin_large_fetch(parts, leaves=leaves))
    assert len(parts.replicas.fetch_purgatory) == (0 if leaves else 1)


def test_records_of_many_rows_stay_readable_while_the_response_is_made_in_slices(
    tmp_path: Path,
) -> None:
    """A fetch that waited is read at once; the log may be deleted before its response is sent."""
    parts = Parts(tmp_path)
    partition = parts.lead(isr=(1,))
    large = build_batch([RecordData(None, bytes(100_000))])
    parts.replicas.append("t", 0, large, 1, 11)
    rows = [SessionRow("t", partition.topic_id, index, 0, 1 << 20) for index in range(300)]
    results = [FetchResult(row, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for row in rows]
    results[0] = partition.read(rows[0], -1, 0, 1 << 20, True, 0)
    context = RequestContext(RequestHeader(1, 17, 1, "test"), "127.0.0.1", "PLAINTEXT")
    responses = FetchResponses(parts.replicas, parts.metrics, parts.cluster)
    work: Any = responses.create(context, FetchContext([], None, incremental=False), results)
    next(work)
    stop = StopReplicaCommand(1, 1, 1, [StopReplicaPartition("t", 0, delete=True)])
    run(parts.replicas.stop_replicas(stop))
    response = run_now(work)
    region = response.responses[0].partitions[0].records
    assert isinstance(region, FileRegion)
    assert len(region.take(1 << 20)) == len(large)
