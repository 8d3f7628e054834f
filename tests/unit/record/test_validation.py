"""The produce path: what is accepted untouched, and each rule by the code it refuses with."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.batch_header import read_header
from kafkapy.record.batch_rules import COMPACTED_RECORDS_MAX, BatchRules
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.codec import Codec
from kafkapy.record.control import end_transaction_marker
from kafkapy.record.validation import (
    prepare_client_batch,
    prepare_internal_batch,
)
from tests.harness.storage.batches import NOW_MS, ROWS, any_row, patched, raw_batch, rows
from tests.harness.storage.legacy_messages import message

RULES = BatchRules()
BATCH = build_batch(ROWS)
MARKER = end_transaction_marker(
    commit=True, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=NOW_MS
)


def refusal(records: bytes, rules: BatchRules = RULES, version: int = 9) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        prepare_client_batch(memoryview(records), rules, NOW_MS, version)
    return caught.value.code


@given(st.lists(any_row, min_size=1, max_size=5), st.sampled_from(Codec), st.integers(-1, 99))
def test_a_sound_batch_passes_untouched(
    given_rows: list[RecordData], codec: Codec, producer_id: int
) -> None:
    sequence = 0 if producer_id >= 0 else -1
    batch = build_batch(given_rows, codec=codec, producer_id=producer_id, base_sequence=sequence)
    view = memoryview(batch)
    prepared = prepare_client_batch(view, RULES, NOW_MS)
    assert prepared.records is view
    assert prepared.header == read_header(batch)
    assert prepared.log_append_time == -1


def test_a_compacted_topic_takes_no_batch_of_a_million_records() -> None:
    """The cleaner held half a gigabyte for a batch of 1 MB. Java producers split it after this
    code.
    """
    count = COMPACTED_RECORDS_MAX + 1
    payload = zlib.compress(bytes(7 * count), 9, 31)
    batch = raw_batch(payload, count, Codec.GZIP)
    assert refusal(batch, BatchRules(compacted=True)) is ErrorCode.MESSAGE_TOO_LARGE
    assert prepare_client_batch(memoryview(batch), RULES, NOW_MS).header.record_count == count
    most = raw_batch(payload, count - 1, Codec.GZIP)
    assert refusal(most, BatchRules(compacted=True)) is ErrorCode.INVALID_RECORD, "zeros"


@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_of_the_topics_own_codec_is_not_recompressed(codec: Codec) -> None:
    view = memoryview(build_batch(ROWS, codec=codec))
    assert prepare_client_batch(view, BatchRules(codec=codec), NOW_MS).records is view


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"magic": 1}, ErrorCode.INVALID_RECORD),
        ({"magic": 3}, ErrorCode.CORRUPT_MESSAGE),
        ({"base_offset": 1}, ErrorCode.INVALID_RECORD),
        ({"base_offset": -1}, ErrorCode.INVALID_RECORD),
        ({"crc": 1}, ErrorCode.CORRUPT_MESSAGE),
        ({"record_count": 0, "last_offset_delta": -1}, ErrorCode.INVALID_RECORD),
        ({"record_count": -1, "last_offset_delta": -2}, ErrorCode.INVALID_RECORD),
        ({"record_count": 4}, ErrorCode.INVALID_RECORD),
        ({"last_offset_delta": 5}, ErrorCode.INVALID_RECORD),
        ({"attributes": 0x20}, ErrorCode.INVALID_RECORD),
        ({"attributes": 0x40}, ErrorCode.INVALID_RECORD),
        ({"attributes": 0x08}, ErrorCode.INVALID_TIMESTAMP),
        ({"attributes": 5}, ErrorCode.INVALID_RECORD),
        ({"attributes": 7}, ErrorCode.INVALID_RECORD),
        ({"producer_id": 1}, ErrorCode.INVALID_RECORD),
        ({"producer_id": 1, "base_sequence": -2}, ErrorCode.INVALID_RECORD),
        ({"batch_length": len(BATCH) - 11}, ErrorCode.INVALID_RECORD),
        ({"batch_length": len(BATCH) - 13}, ErrorCode.INVALID_RECORD),
        ({"batch_length": 48}, ErrorCode.CORRUPT_MESSAGE),
        ({"batch_length": 0}, ErrorCode.CORRUPT_MESSAGE),
        ({"batch_length": -1}, ErrorCode.CORRUPT_MESSAGE),
        ({"batch_length": 2**31 - 1}, ErrorCode.INVALID_RECORD),
    ],
)
def test_each_rule_on_the_header(fields: dict[str, int], code: ErrorCode) -> None:
    assert refusal(patched(BATCH, **fields)) is code


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("count", [2**31 - 1, 19_200_000])
def test_a_count_that_no_payload_can_hold(codec: Codec, count: int) -> None:
    """Each such batch of one byte rolled a segment and moved the log end by 2^31."""
    assert refusal(raw_batch(b"x", count, codec)) is ErrorCode.INVALID_RECORD


def test_a_count_is_held_against_the_bytes() -> None:
    """7 is the least that a record takes."""
    assert refusal(raw_batch(bytes(7 * 100 - 1), 100)) is ErrorCode.INVALID_RECORD
    prepare_client_batch(memoryview(raw_batch(bytes(7 * 100), 100)), RULES, NOW_MS)


@pytest.mark.parametrize(
    ("codec", "ratio"),
    [(Codec.GZIP, 1032), (Codec.SNAPPY, 22), (Codec.LZ4, 255), (Codec.ZSTD, 32768)],
)
def test_a_compressed_count_is_held_against_the_greatest_ratio(codec: Codec, ratio: int) -> None:
    most = 700 * ratio // 7
    prepare_client_batch(memoryview(raw_batch(bytes(700), most, codec)), RULES, NOW_MS)
    assert refusal(raw_batch(bytes(700), most + 1, codec)) is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", list(Codec))
def test_the_densest_true_batch_passes(codec: Codec) -> None:
    """Records without anything in them compress as well as any can."""
    batch = build_batch([RecordData(None, None, NOW_MS)] * 200_000, codec=codec)
    prepare_client_batch(memoryview(batch), BatchRules(max_message_bytes=1 << 22), NOW_MS)


def test_a_client_without_a_producer_id_may_have_any_sequence() -> None:
    """KafkaJS sends epoch 0 and sequence 0 with the producer id -1; Kafka takes them as nothing."""
    batch = patched(BATCH, producer_epoch=0, base_sequence=0)
    prepare_client_batch(memoryview(batch), RULES, NOW_MS)


def test_exactly_one_batch() -> None:
    assert refusal(b"") is ErrorCode.INVALID_RECORD
    assert refusal(BATCH + BATCH) is ErrorCode.INVALID_RECORD
    assert refusal(BATCH[:60]) is ErrorCode.INVALID_RECORD
    assert refusal(BATCH[:61]) is ErrorCode.INVALID_RECORD


def test_size_limit() -> None:
    prepare_client_batch(memoryview(BATCH), BatchRules(max_message_bytes=len(BATCH)), NOW_MS)
    too_small = BatchRules(max_message_bytes=len(BATCH) - 1)
    assert refusal(BATCH, too_small) is ErrorCode.MESSAGE_TOO_LARGE
    with pytest.raises(ApiError, match=r"larger than max\.message\.bytes"):
        prepare_internal_batch(BATCH, too_small, NOW_MS)


@pytest.mark.parametrize(
    ("rules", "accepted"),
    [
        (BatchRules(timestamp_before_max_ms=10), True),
        (BatchRules(timestamp_before_max_ms=4), False),
        (BatchRules(timestamp_after_max_ms=3), True),
        (BatchRules(timestamp_after_max_ms=2), False),
        (
            BatchRules(timestamp_before_max_ms=0, timestamp_after_max_ms=0, log_append_time=True),
            True,
        ),
    ],
)
def test_timestamp_window(rules: BatchRules, accepted: bool) -> None:
    batch = build_batch([RecordData(b"k", b"v", NOW_MS - 5), RecordData(b"k", b"v", NOW_MS + 3)])
    if accepted:
        prepare_client_batch(memoryview(batch), rules, NOW_MS)
    else:
        assert refusal(batch, rules) is ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("codec", list(Codec))
def test_a_missing_maximum_is_set_and_compared_with_the_limits(codec: Codec) -> None:
    batch = build_batch(ROWS, codec=codec)
    unset = patched(batch, max_timestamp=-1)
    prepared = prepare_client_batch(memoryview(unset), RULES, NOW_MS)
    assert (bytes(prepared.records), prepared.header) == (batch, read_header(batch))
    assert refusal(unset, BatchRules(timestamp_after_max_ms=999_999)) is ErrorCode.INVALID_TIMESTAMP


def test_records_that_cannot_be_read_have_no_maximum() -> None:
    assert refusal(raw_batch(bytes(700), 100, max_timestamp=-1)) is ErrorCode.INVALID_RECORD


def test_zstd_needs_produce_v7() -> None:
    batch = build_batch(ROWS, codec=Codec.ZSTD)
    prepare_client_batch(memoryview(batch), RULES, NOW_MS, 7)
    assert refusal(batch, version=6) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert refusal(batch, version=2) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_formats_before_v2_need_produce_before_v3() -> None:
    data = message(1, 0, b"key", bytes(100), timestamp=NOW_MS)
    assert refusal(data, version=3) is ErrorCode.INVALID_RECORD
    assert prepare_client_batch(memoryview(data), RULES, NOW_MS, 2).header.magic == 2
    assert prepare_client_batch(memoryview(BATCH), RULES, NOW_MS, 2).header.magic == 2


def test_a_coordinator_may_write_what_a_client_may_not() -> None:
    for batch in (MARKER, patched(BATCH, producer_id=1), patched(BATCH, attributes=0x10)):
        assert prepare_internal_batch(batch, RULES, NOW_MS).records is batch
    assert refusal(MARKER) is ErrorCode.INVALID_RECORD


def test_a_coordinators_bytes_are_checked_too() -> None:
    for bad in (patched(BATCH, crc=1), BATCH[:-1], patched(BATCH, attributes=7)):
        with pytest.raises(ApiError):
            prepare_internal_batch(bad, RULES, NOW_MS)
    compacted = BatchRules(compacted=True)
    with pytest.raises(ApiError, match="without key"):
        prepare_internal_batch(build_batch(rows(1, key=None)), compacted, NOW_MS)
