"""The costs of a Produce request: slices of the loop, and the room that its batches unfold in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kafkapy.record import batch_rules
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.codec import Codec
from kafkapy.record.validation import BRIEF_BYTES
from kafkapy.server.requests.turns import SLICE_UNITS, finished
from tests.harness.cores.ports import NOW_MS
from tests.harness.cores.request_contexts import request_context
from tests.harness.cores.server_parts import Parts
from tests.harness.storage.legacy_messages import message
from tests.harness.storage.partitions import partition_state

MESSAGE = message(1, 0, b"k", None, timestamp=NOW_MS)
RECORD = RecordData(b"k", bytes(100_000), NOW_MS)


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    parts = Parts(tmp_path)
    parts.tell(partition_state(), compression_type="gzip")
    return parts


def produce(parts: Parts, version: int, records: Sequence[bytes]) -> Any:
    """The outcome of a request with a row for each of `records`, all of one partition."""
    rows = [PartitionProduceData(index=0, records=memoryview(each)) for each in records]
    request = ProduceRequest(
        acks=1, timeout_ms=10, topic_data=[TopicProduceData(name="t", partition_data=rows)]
    )
    context = request_context(0, version)
    return parts.produce_paths.general(context, request)


def codes(response: ProduceResponse) -> list[int]:
    return [row.error_code for row in response.responses[0].partition_responses]


def test_the_conversion_of_brief_rows_is_cut_into_slices(parts: Parts) -> None:
    """200 rows of old messages, each converted at once, took a third of a second."""
    brief = MESSAGE * (BRIEF_BYTES // len(MESSAGE))
    steps = list(produce(parts, 2, [brief] * 200))
    assert len(steps) == 200 + 1  # rows, and their topic
    assert sum(steps) > 200 * BRIEF_BYTES // 5
    assert max(steps) < SLICE_UNITS


def test_a_few_rows_are_one_slice(parts: Parts) -> None:
    assert list(produce(parts, 2, [MESSAGE, MESSAGE])) == []


def test_the_batches_of_a_request_share_its_room(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_rules, "ROOM_BYTES_MIN", 150_000)
    unfolding = [build_batch([RECORD], codec=Codec.ZSTD)] * 3
    for _ in range(2):  # each request has room of its own
        found = codes(finished(produce(parts, 9, unfolding)))
        assert found == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.MESSAGE_TOO_LARGE]


def test_the_room_grows_with_the_request(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_rules, "ROOM_BYTES_MIN", 0)
    plain = build_batch([RECORD])
    assert len(plain) > BRIEF_BYTES
    assert codes(finished(produce(parts, 9, [plain] * 3))) == [ErrorCode.NONE] * 3
