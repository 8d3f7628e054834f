"""The rules a config gives, markers, and what a follower accepts."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.batch_header import read_header
from kafkapy.record.batch_rules import BatchRules
from kafkapy.record.builder import build_batch
from kafkapy.record.codec import Codec
from kafkapy.record.control import ControlRecordType, end_transaction_marker
from kafkapy.storage.log_append import (
    UnexpectedAppendOffset,
    fetched_batches,
    marker_of,
    rules_of,
)
from kafkapy.storage.log_config import LogConfig
from tests.harness.cores.ports import NOW_MS
from tests.harness.storage.batches import patched
from tests.harness.storage.legacy_messages import message_set, wrapper
from tests.harness.storage.log_builder import row


def test_rules() -> None:
    assert rules_of(LogConfig()) == BatchRules()
    config = LogConfig(
        compression_type="zstd", compression_zstd_level=7, cleanup_policy=("compact",),
        message_timestamp_type="LogAppendTime", message_timestamp_after_max_ms=5,
        message_timestamp_before_max_ms=6, max_message_bytes=9,
    )  # fmt: skip
    assert rules_of(config) == BatchRules(9, Codec.ZSTD, 7, True, 6, 5, True)
    assert rules_of(LogConfig(compression_type="uncompressed")).codec is Codec.NONE


def test_marker_of() -> None:
    marker = end_transaction_marker(
        commit=False, producer_id=1, producer_epoch=0, coordinator_epoch=4, timestamp=NOW_MS
    )
    found = marker_of(read_header(marker), marker)
    assert found == (ControlRecordType.ABORT, 4)
    data = build_batch([row()])
    assert marker_of(read_header(data), data) is None


def test_whole_batches_of_a_fetch() -> None:
    first = build_batch([row()] * 2, base_offset=10)
    second = build_batch([row()], base_offset=15)
    found = fetched_batches(first + second + first[:20], 8)
    assert [(position, h.base_offset) for position, h in found] == [(0, 10), (len(first), 15)]
    assert fetched_batches(b"", 8) == []
    with pytest.raises(UnexpectedAppendOffset) as caught:
        fetched_batches(first + second, 11)
    assert caught.value.first_offset == 10
    with pytest.raises(ApiError) as refused:
        fetched_batches(second + first, 0)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


def test_batches_up_to_an_epoch() -> None:
    first, second, later, last = (
        build_batch([row()], base_offset=offset, leader_epoch=epoch)
        for offset, epoch in enumerate((3, 3, 4, 3))
    )
    old = message_set(1, [0, 1])

    def taken(leader_epoch: int, records: bytes) -> bytes:
        batches = fetched_batches(records, 0, leader_epoch)
        return records[: batches[-1][0] + batches[-1][1].size] if batches else b""

    assert taken(4, b"") == b""
    assert taken(4, first[:30]) == b""
    assert taken(4, first + later[:30]) == first
    for records in (first + later, old):
        assert taken(4, records) == records
    assert taken(3, first + second + later + last) == first + second
    assert taken(3, first + later[:30]) == first
    assert taken(0, old) == old
    with pytest.raises(ApiError) as refused:
        taken(2, first)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    ("fields", "sound"),
    [
        ({"last_offset_delta": 9}, True),
        ({"last_offset_delta": 9, "record_count": 0}, True),
        ({"last_offset_delta": 0}, False),
        ({"last_offset_delta": -1, "record_count": 0}, False),
        ({"last_offset_delta": -5, "record_count": -4}, False),
        ({"record_count": -1}, False),
        ({"record_count": 2**31 - 1}, False),
    ],
)
def test_the_log_end_cannot_go_back_nor_can_a_batch_hold_more_records_than_offsets(
    fields: dict[str, int], sound: bool
) -> None:
    """Compaction leaves fewer records than offsets, perhaps none, and never more."""
    batch = patched(build_batch([row()] * 2, base_offset=10), **fields)
    if sound:
        assert len(fetched_batches(batch, 8)) == 1
        return
    with pytest.raises(ApiError) as refused:
        fetched_batches(batch, 8)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


def test_an_old_wrapper_is_placed_by_its_last_offset() -> None:
    inner = message_set(1, [0, 1, 2])
    [(_, header)] = fetched_batches(wrapper(1, Codec.GZIP, inner, offset=7), 5)
    assert header.next_offset == 8
