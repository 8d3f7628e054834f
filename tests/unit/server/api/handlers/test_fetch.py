"""Limits of a fetch that contradict each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

from kafkapy.protocol.messages.share_fetch import ShareFetchRequest
from kafkapy.server.api.handlers.share_fetch import Handler as ShareFetchHandler
from tests.harness.cores.hot_path import Client, fetch, produce
from tests.harness.cores.server_parts import Parts


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
