"""The costs of a Produce request: slices of the loop, and the room that its batches unfold in."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.metadata.acl_authorizer import AclAuthorizer
from kafkapy.protocol.headers import decode_request_header, encode_request
from kafkapy.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kafkapy.protocol.server_connection import Request
from kafkapy.record import batch_rules
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.codec import Codec
from kafkapy.record.validation import FAST_BYTES_MAX
from kafkapy.server.requests.turns import SLICE_UNITS, run_now
from tests.harness.cores import hot_path
from tests.harness.cores.hot_path import FETCH, PRODUCE, Client, fetch
from tests.harness.cores.paused_loops import fake_timers
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
    parts.apply_leader_and_isr(partition_state(), compression_type="gzip")
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


def test_pipelined_refusals_of_a_client_do_not_fail_the_produce_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They wait behind a fetch. The produce that ended this fetch had their RecursionError: its
    producer got UNKNOWN_SERVER_ERROR for records that were appended.
    """
    turns = fake_timers(monkeypatch)
    parts = Parts(tmp_path)
    parts.lead()
    unverified = build_batch(
        [RECORD._replace(value=b"v")],
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    row = PartitionProduceData(index=0, records=unverified)
    refused = ProduceRequest(
        transactional_id="x",
        acks=-1,
        timeout_ms=10,
        topic_data=[TopicProduceData(name="t", partition_data=[row])],
    )
    one, another = Client(parts), Client(parts)
    one.sends(FETCH, fetch(max_wait_ms=30_000))()
    one.sends(PRODUCE, *[refused] * 1000)()
    answer = another.asks(PRODUCE, hot_path.produce("t"), ProduceResponse)
    assert codes(answer) == [ErrorCode.NONE]
    while turns.delays_s:
        turns.fire()
    assert one.connection.is_idle


def test_the_conversion_of_brief_rows_is_cut_into_slices(parts: Parts) -> None:
    """200 rows of old messages, each converted at once, took a third of a second."""
    brief = MESSAGE * (FAST_BYTES_MAX // len(MESSAGE))
    steps = list(produce(parts, 2, [brief] * 200))
    assert len(steps) == 200 + 1  # rows, and their topic
    assert sum(steps) > 200 * FAST_BYTES_MAX // 5
    assert max(steps) < SLICE_UNITS


def test_a_few_rows_are_one_slice(parts: Parts) -> None:
    assert list(produce(parts, 2, [MESSAGE, MESSAGE])) == []


def test_the_batches_of_a_request_share_its_room(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_rules, "BUDGET_BYTES_MIN", 150_000)
    unfolding = [build_batch([RECORD], codec=Codec.ZSTD)] * 3
    for _ in range(2):  # each request has room of its own
        found = codes(run_now(produce(parts, 9, unfolding)))
        assert found == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.MESSAGE_TOO_LARGE]


def test_the_room_grows_with_the_request(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_rules, "BUDGET_BYTES_MIN", 0)
    plain = build_batch([RECORD])
    assert len(plain) > FAST_BYTES_MAX
    assert codes(run_now(produce(parts, 9, [plain] * 3))) == [ErrorCode.NONE] * 3


def frame_of_many_topics(value: bytes) -> bytes:
    """A record for the topic u, behind rows for so many others that a slice ends before it."""
    batch = build_batch([RecordData(b"k", value, NOW_MS)])
    names = [*(f"n{number:03}" for number in range(500)), "u"]
    topics = [
        TopicProduceData(name=name, partition_data=[PartitionProduceData(index=0, records=batch)])
        for name in names
    ]
    request = ProduceRequest(acks=1, timeout_ms=10, topic_data=topics)
    return encode_request(request, 9, 1, "me")[4:]


def test_records_outlive_the_buffer_while_many_topics_are_authorized(parts: Parts) -> None:
    """The next request of this shape was appended instead, and both were acknowledged."""
    parts.authorizer = AclAuthorizer(frozenset(["User:a"]))
    log = parts.lead("u").log
    client: Any = SimpleNamespace(
        client_host="h", listener="L", principal="User:a", is_token=False, fast_path=None
    )
    scratch = bytearray(frame_of_many_topics(b"one"))

    async def work() -> Any:
        view = memoryview(scratch)
        header, body = decode_request_header(view)
        pending: Any = parts.dispatcher().dispatch(client, Request(0, header, view, body))
        scratch[:] = frame_of_many_topics(b"two")
        answered = asyncio.get_running_loop().create_future()
        pending.when_complete(answered.set_result)
        return await answered

    response = asyncio.run(work())
    assert response.responses[-1].partition_responses[0].error_code == ErrorCode.NONE
    assert b"one" in bytes(log.read(0, 1000, 1, min_one_message=True).records)
