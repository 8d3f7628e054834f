"""The rules of an append, which hold on both paths of a Produce."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.server.api import produce_append
from kafkapy.storage.unified_log import UnifiedLog
from tests.harness.cores.ports import NOW_MS
from tests.harness.cores.server_parts import Parts
from tests.harness.storage.batches import patched
from tests.harness.storage.partitions import batch

RECORDS = batch(2, NOW_MS)
TRANSACTIONAL = patched(RECORDS, attributes=0x10, producer_id=7, producer_epoch=0, base_sequence=0)


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    parts = Parts(tmp_path)
    parts.lead()
    return parts


def append(
    parts: Parts, topic: str = "t", records: bytes | None = RECORDS, client: str = "me"
) -> int:
    info, _ = produce_append.append(parts.replicas, parts.metrics, topic, 0, records, 1, 9, client)
    return info.first_offset


def test_what_is_appended_is_counted(parts: Parts) -> None:
    assert [append(parts) for _ in range(2)] == [0, 2]
    counters = parts.metrics.topics["t"]
    assert (counters.produces, counters.messages_in) == (2, 4)
    assert counters.bytes_in == 2 * len(RECORDS)


def test_only_admin_clients_append_to_internal_topics(parts: Parts) -> None:
    parts.coordinate()
    with pytest.raises(ApiError) as refusal:
        append(parts, "__consumer_offsets")
    assert refusal.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert append(parts, "__consumer_offsets", client="__admin_client") == 0


def test_a_row_without_records_is_refused(parts: Parts) -> None:
    with pytest.raises(ApiError) as refusal:
        append(parts, records=None)
    assert refusal.value.code is ErrorCode.INVALID_RECORD


def test_a_fault_is_a_refusal(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: object) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(UnifiedLog, "append_as_leader", fails)
    with pytest.raises(ApiError) as refusal:
        append(parts)
    assert refusal.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "t" not in parts.metrics.topics


@pytest.mark.parametrize(("acks", "waits"), [(-1, 1), (1, 1), (0, 0)])
def test_who_begins_a_transaction_is_verified(parts: Parts, acks: int, waits: int) -> None:
    writing = produce_append.writing("t", 0, TRANSACTIONAL, 11)
    assert writing is not None
    assert produce_append.writing("t", 0, RECORDS, 11) is None
    verifier = parts.verifier
    assert len(produce_append.unverified(verifier, acks, "x", [writing])) == waits


def test_a_transactional_batch_needs_a_transactional_id(parts: Parts) -> None:
    writing = produce_append.writing("t", 0, TRANSACTIONAL, 11)
    assert writing is not None
    with pytest.raises(ApiError) as refusal:
        produce_append.unverified(parts.verifier, -1, None, [writing])
    assert refusal.value.code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
