"""The slow paths: other codec, append time, keys of compacted topics, conversion up."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record import rewriting
from kafkapy.record.batch_crc import validate_crc
from kafkapy.record.batch_header import INT64_MAX, TimestampType, read_header
from kafkapy.record.batch_rules import BatchRules, InvalidRecords, PreparedBatch
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.codec import Codec
from kafkapy.record.compression import compress
from kafkapy.record.control import end_transaction_marker
from kafkapy.record.records import iter_records
from kafkapy.record.validation import prepare_client_batch, prepare_internal_batch
from tests.harness.storage.batches import NOW_MS, ROWS, raw_batch, row_bytes, rows
from tests.harness.storage.legacy_messages import message, message_set, wrapper

KEYED = [row._replace(key=b"key") for row in ROWS]
LATER = NOW_MS + 12345


def prepared(records: bytes, rules: BatchRules, version: int = 9) -> PreparedBatch:
    result = prepare_client_batch(memoryview(records), rules, LATER, version)
    assert read_header(result.records) == result.header
    assert result.header.size == len(result.records)
    validate_crc(result.records, 0, result.header)
    return result


def refusal(records: bytes, rules: BatchRules, version: int = 9) -> ApiError:
    with pytest.raises(ApiError) as caught:
        prepare_client_batch(memoryview(records), rules, NOW_MS, version)
    return caught.value


@pytest.mark.parametrize("sent", list(Codec))
@pytest.mark.parametrize("wanted", list(Codec))
def test_the_topics_codec(sent: Codec, wanted: Codec) -> None:
    batch = build_batch(
        ROWS, codec=sent, producer_id=3, producer_epoch=1, base_sequence=8, is_transactional=True
    )
    result = prepared(batch, BatchRules(codec=wanted))
    assert result.header.codec is wanted
    assert list(iter_records(result.records)) == list(iter_records(batch))
    same = ("producer_id", "producer_epoch", "base_sequence", "is_transactional", "record_count")
    for name in same:
        assert getattr(result.header, name) == getattr(read_header(batch), name)
    assert result.log_append_time == -1


def test_the_topics_level() -> None:
    batch = build_batch(rows(3000))
    sizes = [
        len(prepared(batch, BatchRules(codec=Codec.GZIP, level=level)).records) for level in (1, 9)
    ]
    assert sizes[1] < sizes[0]


@pytest.mark.parametrize("codec", [None, Codec.NONE, Codec.GZIP])
def test_log_append_time(codec: Codec | None) -> None:
    batch = build_batch(ROWS)
    result = prepared(batch, BatchRules(codec=codec, log_append_time=True))
    assert result.log_append_time == result.header.max_timestamp == LATER
    assert result.header.base_timestamp == read_header(batch).base_timestamp
    records = list(iter_records(result.records))
    assert {record.timestamp for record in records} == {LATER}
    assert {record.timestamp_type for record in records} == {TimestampType.LOG_APPEND_TIME}
    assert [record.value for record in records] == [row.value for row in ROWS]
    assert read_header(batch).is_log_append_time is False


def test_recompression_may_make_a_batch_too_large() -> None:
    batch = build_batch(rows(500), codec=Codec.GZIP)
    rules = BatchRules(codec=Codec.NONE, max_message_bytes=len(batch))
    assert refusal(batch, rules).code is ErrorCode.MESSAGE_TOO_LARGE


def test_recompression_of_what_does_not_decompress() -> None:
    batch = raw_batch(b"no gzip", 1, Codec.GZIP)
    assert refusal(batch, BatchRules(codec=Codec.LZ4)).code is ErrorCode.CORRUPT_MESSAGE


def test_markers_are_never_compressed() -> None:
    marker = end_transaction_marker(
        commit=False, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=NOW_MS
    )
    rules = BatchRules(codec=Codec.GZIP, compacted=True)
    assert prepare_internal_batch(marker, rules, LATER).records is marker
    stamped = prepare_internal_batch(marker, rules._replace(log_append_time=True), LATER)
    assert stamped.header.codec is Codec.NONE
    assert (stamped.header.is_control, stamped.header.max_timestamp) == (True, LATER)


@pytest.mark.parametrize("codec", list(Codec))
def test_a_compacted_topic_wants_keys(codec: Codec) -> None:
    rules = BatchRules(compacted=True)
    keyed = memoryview(build_batch(KEYED, codec=codec))
    assert prepare_client_batch(keyed, rules, NOW_MS).records is keyed
    mixed = [row._replace(key=None if i % 2 else b"") for i, row in enumerate(ROWS * 2)]
    error = refusal(build_batch(mixed, codec=codec), rules)
    assert isinstance(error, InvalidRecords)
    assert error.code is ErrorCode.INVALID_RECORD
    assert [index for index, _ in error.record_errors] == [1, 3, 5, 7, 9]
    assert all("without key" in text for _, text in error.record_errors)
    assert error.message.count("without key") == 3


@pytest.mark.parametrize(
    ("payload", "count", "why"),
    [
        (build_batch(rows(2))[61:], 3, "index out of range"),
        (build_batch(rows(2))[61:], 1, "follow the last record"),
        (build_batch(rows(1))[61:] * 2, 2, "offset delta 0 is not consecutive"),
        (build_batch(rows(1))[61:-1], 1, "out of bounds"),
        (b"\x01" + bytes(6), 1, "length -1"),
        (b"\xff" * 11, 1, "longer than 10 bytes"),
        (row_bytes(b"\x00\x00\x00\x02k\x04v\x00"), 1, "index out of range"),
        (row_bytes(b"\x00\x00\x00\x02k\x06v\x00"), 1, "field length 3 is out of bounds"),
        (row_bytes(b"\x00\x00\x00\x02k\x03v\x00"), 1, "field length -2 is out of bounds"),
        (row_bytes(b"\x00\x00\x00\x04k\x02v\x00"), 1, "field length 59 is out of bounds"),
        (row_bytes(b"\x00\x00\x00\x03\x02v\x00"), 1, "field length -2 is out of bounds"),
        (row_bytes(b"\x00\x00\x00\x02k\x02v\x01"), 1, "header count -1 is out of bounds"),
        (row_bytes(b"\x00\x00\x00\x02k\x02v\x06\x00\x00"), 1, "header count 3 is out of bounds"),
        (row_bytes(b"\x00\x00\x00\x02k\x02v\x02\x01\x00"), 1, "a header key is null"),
        (
            row_bytes(b"\x00\x00\x00\x02k\x02v\x02\x02h\x04x"),
            1,
            "field length 2 is out of bounds",
        ),
        (row_bytes(b"\x00\x00\x00\x02k\x02v\x00\x00"), 1, "1 more bytes than its fields"),
        (
            row_bytes(b"\x00\x00\x00\x02k\x02v\x02\x02h\x02x\x00"),
            1,
            "1 more bytes than its fields",
        ),
        (row_bytes(b"\x00\x00\x00\x02k\x02v"), 1, "index out of range"),
        (row_bytes(b"\x00\x00\x00\x02k\x82\x80\x80\x80\x80\x00v\x00"), 1, "longer than 5 bytes"),
        (
            row_bytes(b"\x00%b\x00\x02k\x02v\x00" % (b"\xfe" + b"\xff" * 8 + b"\x01")),
            1,
            "timestamp delta",
        ),
    ],
)
def test_the_walk_refuses_what_are_no_records(payload: bytes, count: int, why: str) -> None:
    error = refusal(raw_batch(payload, count), BatchRules(compacted=True))
    assert error.code is ErrorCode.INVALID_RECORD
    assert why in error.message


@pytest.mark.parametrize("sent", [codec for codec in Codec if codec])
def test_a_batch_that_is_decompressed_holds_its_count(sent: Codec) -> None:
    payload = compress(sent, build_batch(rows(10))[61:])
    honest = raw_batch(payload, 10, sent)
    assert prepared(honest, BatchRules(codec=Codec.NONE)).header.record_count == 10
    error = refusal(raw_batch(payload, 100, sent), BatchRules(codec=Codec.NONE))
    assert error.code is ErrorCode.INVALID_RECORD
    assert "cannot hold 100 records" in error.message


@pytest.mark.parametrize("codec", list(Codec))
def test_a_lying_value_length_is_refused_however_it_is_compressed(codec: Codec) -> None:
    payload = compress(codec, row_bytes(b"\x00\x00\x00\x02k\x04v\x00"))
    batch = raw_batch(payload, 1, codec)
    error = refusal(batch, BatchRules(compacted=True))
    assert error.code is ErrorCode.INVALID_RECORD
    assert "malformed" in error.message
    with pytest.raises(ApiError, match="malformed"):
        prepare_internal_batch(batch, BatchRules(compacted=True), NOW_MS)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_conversion_up(magic: int, codec: Codec) -> None:
    inner = message_set(magic, [0, 1, 2])
    data = inner if codec is Codec.NONE else wrapper(magic, codec, inner)
    result = prepared(data, BatchRules(), version=2)
    header = result.header
    assert (header.magic, header.codec, header.record_count, header.base_offset) == (2, codec, 3, 0)
    assert (header.producer_id, header.base_sequence) == (-1, -1)
    times = [-1, -1, -1] if magic == 0 else [1000, 1001, 1002]
    expected = [RecordData(b"k", b"value %d" % i, time, []) for i, time in enumerate(times)]
    got = [RecordData(r.key, r.value, r.timestamp, r.headers) for r in iter_records(result.records)]
    assert got == expected


def test_conversion_up_with_the_topics_codec_and_time() -> None:
    data = wrapper(1, Codec.GZIP, message_set(1, [0, 1])) + message(1, 1, b"k", b"tail")
    result = prepared(data, BatchRules(codec=Codec.ZSTD, log_append_time=True), version=1)
    assert (result.header.codec, result.header.record_count) == (Codec.ZSTD, 3)
    assert result.log_append_time == result.header.max_timestamp == LATER
    assert {record.timestamp for record in iter_records(result.records)} == {LATER}


@pytest.mark.parametrize("times", [(-1, INT64_MAX - 1), (INT64_MAX - 1, -1)])
def test_converted_timestamps_as_far_apart_as_can_be_are_read_again(times: tuple[int, int]) -> None:
    data = b"".join(message(1, i, b"k", b"v", timestamp=each) for i, each in enumerate(times))
    result = prepared(data, BatchRules(), version=2)
    assert tuple(record.timestamp for record in iter_records(result.records)) == times


@pytest.mark.parametrize(
    ("data", "rules", "code"),
    [
        (message(1, 0, b"k", b"v")[:-1] + b"?", BatchRules(), ErrorCode.CORRUPT_MESSAGE),
        (message(1, 0, b"k", b"v")[:-1], BatchRules(), ErrorCode.CORRUPT_MESSAGE),
        (message(1, 0, b"k", b"v") + b"tail", BatchRules(), ErrorCode.CORRUPT_MESSAGE),
        (message(1, 0, b"k", b"v", attributes=8), BatchRules(), ErrorCode.INVALID_TIMESTAMP),
        (
            message(1, 0, b"k", b"v", timestamp=5),
            BatchRules(timestamp_before_max_ms=9),
            ErrorCode.INVALID_TIMESTAMP,
        ),
        (message(1, 0, b"k", b"v", timestamp=-2), BatchRules(), ErrorCode.INVALID_TIMESTAMP),
        (
            message(1, 0, b"k", b"v", timestamp=-2),
            BatchRules(log_append_time=True),
            ErrorCode.INVALID_TIMESTAMP,
        ),
        (
            wrapper(1, Codec.GZIP, message(1, 0, b"k", b"v", timestamp=INT64_MAX)),
            BatchRules(),
            ErrorCode.INVALID_TIMESTAMP,
        ),
        (
            message(1, 0, b"k", bytes(100)),
            BatchRules(max_message_bytes=100),
            ErrorCode.MESSAGE_TOO_LARGE,
        ),
        (
            wrapper(1, Codec.GZIP, message(1, 0, b"k", bytes(1000))),
            BatchRules(max_message_bytes=500, codec=Codec.NONE),
            ErrorCode.MESSAGE_TOO_LARGE,
        ),
        (message(1, 0, b"k", b"v") + build_batch(ROWS), BatchRules(), ErrorCode.INVALID_RECORD),
        (message(0, 0, None, b"v"), BatchRules(compacted=True), ErrorCode.INVALID_RECORD),
    ],
)
def test_sets_that_are_refused(data: bytes, rules: BatchRules, code: ErrorCode) -> None:
    assert refusal(data, rules, version=2).code is code


def test_the_keys_that_a_converted_set_lacks_are_named() -> None:
    data = message(1, 0, b"k", b"v") + message(1, 1, None, b"v") + message(1, 2, None, b"v")
    error = refusal(data, BatchRules(compacted=True), version=2)
    assert isinstance(error, InvalidRecords)
    assert [index for index, _ in error.record_errors] == [1, 2]


def test_the_messages_of_a_set_share_one_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    one = wrapper(1, Codec.GZIP, message(1, 0, b"k", bytes(600)))
    monkeypatch.setattr(rewriting, "CONVERTED_BYTES_MAX", 1000)
    assert prepared(one, BatchRules(), version=2).header.record_count == 1
    assert refusal(one + one, BatchRules(), version=2).code is ErrorCode.CORRUPT_MESSAGE


def test_of_very_many_records_without_a_key_the_first_are_named() -> None:
    data = build_batch([RecordData(None, b"", 1)] * 5000)
    error = refusal(data, BatchRules(compacted=True))
    assert isinstance(error, InvalidRecords)
    assert str(error).startswith("5000 records have been rejected, at most 3 shown")
    assert [index for index, _ in error.record_errors] == list(range(1000))
