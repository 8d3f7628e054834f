"""Fetches with limits that contradict each other, and fetches whose clients have gone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from kafkapy.protocol.messages.fetch import FetchPartition
from kafkapy.protocol.messages.share_fetch import ShareFetchRequest
from kafkapy.server.api.handlers.share_fetch import Handler as ShareFetchHandler
from tests.harness.cores.hot_path import Client, fetch, produce
from tests.harness.cores.server_parts import Parts

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
    handler = ShareFetchHandler(nobody, nobody, nobody, max_bytes=100)
    for max_bytes, most in ((50, 50), (200, 100)):
        request = ShareFetchRequest(min_bytes=1 << 20, max_bytes=max_bytes)
        params = handler._params(request, "m")
        assert (params.min_bytes, params.max_bytes) == (most, most)


async def begin_large_fetch(parts: Parts, *, leaves: bool) -> None:
    """A client fetches with more rows than one slice has, and may leave meanwhile."""
    client = Client(parts)
    request = fetch(max_wait_ms=2**31 - 1)
    row = FetchPartition(fetch_offset=0, partition_max_bytes=1)
    request.topics[0].partitions = [row] * MANY
    client.sends(12, request)()
    while not parts.turns.slices:
        await asyncio.sleep(0)
    if leaves:
        client.connection.connection_lost(None)
    await parts.turns.turn()  # behind the slices of the fetch


@pytest.mark.parametrize("leaves", [False, True])
def test_no_fetch_waits_for_a_client_that_left_while_it_was_handled(
    tmp_path: Path, leaves: bool
) -> None:
    parts = Parts(tmp_path)
    parts.lead(isr=(1,))
    asyncio.run(begin_large_fetch(parts, leaves=leaves))
    assert len(parts.replicas.fetch_purgatory) == (0 if leaves else 1)
