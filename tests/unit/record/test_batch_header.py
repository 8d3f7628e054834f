"""The 61 bytes: each field at its offset, the flags, the walk over whole batches."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.batch_header import (
    HEADER,
    HEADER_SIZE,
    BatchHeader,
    TimestampType,
    add_to_sequence,
    first_16_bytes,
    iter_headers,
    read_header,
    transactional_header,
    whole_batch_size,
)
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.record.codec import Codec
from tests.harness.storage.batches import ROWS, patched, rows


def test_every_field_is_read_from_its_offset() -> None:
    fields = {  # name: (offset, struct code, value), as the protocol guide lists them
        "base_offset": (0, "q", 1 << 40),
        "batch_length": (8, "i", 4711),
        "partition_leader_epoch": (12, "i", 9),
        "magic": (16, "b", 2),
        "crc": (17, "I", 0xFEDCBA98),
        "attributes": (21, "h", 0x17),
        "last_offset_delta": (23, "i", 41),
        "base_timestamp": (27, "q", 1_700_000_000_001),
        "max_timestamp": (35, "q", 1_700_000_000_009),
        "producer_id": (43, "q", 77),
        "producer_epoch": (51, "h", 3),
        "base_sequence": (53, "i", 1000),
        "record_count": (57, "i", 42),
    }
    data = bytearray(5 + HEADER_SIZE)
    for offset, code, value in fields.values():
        struct.pack_into(">" + code, data, 5 + offset, value)
    header = read_header(memoryview(data), 5)
    assert header._asdict() == {name: value for name, (_, _, value) in fields.items()}
    assert (header.size, header.last_offset) == (4723, (1 << 40) + 41)
    assert header.next_offset == (1 << 40) + 42
    assert header.last_sequence == 1041


@pytest.mark.parametrize(
    ("attributes", "true_flags"),
    [
        (0x00, set()),
        (0x08, {"is_log_append_time"}),
        (0x10, {"is_transactional"}),
        (0x20, {"is_control"}),
        (0x40, {"has_delete_horizon"}),
        (0x78, {"is_log_append_time", "is_transactional", "is_control", "has_delete_horizon"}),
    ],
)
def test_flags(attributes: int, true_flags: set[str]) -> None:
    header = read_header(build_batch(ROWS))._replace(attributes=attributes)
    flags = ("is_log_append_time", "is_transactional", "is_control", "has_delete_horizon")
    assert {name for name in flags if getattr(header, name)} == true_flags
    expected = header.base_timestamp if attributes & 0x40 else None
    assert header.delete_horizon_ms == expected


@pytest.mark.parametrize("codec", list(Codec))
def test_codec(codec: Codec) -> None:
    assert read_header(build_batch(ROWS, codec=codec)).codec is codec


@pytest.mark.parametrize("unknown", [5, 6, 7])
def test_a_codec_that_does_not_exist(unknown: int) -> None:
    with pytest.raises(ApiError, match=f"codec {unknown}") as caught:
        read_header(build_batch(ROWS))._replace(attributes=unknown).codec
    assert caught.value.code is ErrorCode.INVALID_RECORD


def test_timestamp_types_have_kafkas_names() -> None:
    labels = [kind.label for kind in TimestampType]
    assert labels == ["NoTimestampType", "CreateTime", "LogAppendTime"]


def test_sequences_wrap_to_zero() -> None:
    assert add_to_sequence(2**31 - 1, 1) == 0
    header = read_header(build_batch(rows(3), producer_id=1, base_sequence=2**31 - 2))
    assert header.last_sequence == 0
    assert read_header(build_batch(rows(3))).last_sequence == -1


@given(st.integers(0, 2**63 - 1), st.integers(49, 2**31 - 1), st.integers(-1, 2**31 - 1))
def test_first_16_bytes_stamp_a_batch_outside_its_crc(offset: int, length: int, epoch: int) -> None:
    batch = build_batch(ROWS)
    stamped = read_header(first_16_bytes(offset, length, epoch) + batch[16:HEADER_SIZE])
    assert stamped[:3] == (offset, length, epoch)
    assert stamped[3:] == read_header(batch)[3:]


def test_walk_gives_whole_batches_only() -> None:
    first, second = build_batch(rows(2)), build_batch(rows(3), base_offset=2)
    data = b"pre" + first + second
    whole = [(3, read_header(first)), (3 + len(first), read_header(second))]
    assert list(iter_headers(data, 3)) == whole
    for cut in range(1, len(second)):
        assert list(iter_headers(data[:-cut], 3)) == whole[:1]
    assert list(iter_headers(data, 3, end=3 + len(first))) == whole[:1]
    assert whole_batch_size(data, 3, len(data)) == len(first)
    assert whole_batch_size(data, 3, 2 + len(first)) is None


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 13])
def test_walk_refuses_a_length_no_batch_has(length: int) -> None:
    with pytest.raises(ApiError, match=str(length)) as caught:
        list(iter_headers(patched(build_batch(ROWS), batch_length=length)))
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("fields", [{"magic": 3}, {"magic": -1}, {"batch_length": 48}])
def test_bytes_that_cannot_begin_a_batch(fields: dict[str, int]) -> None:
    data = patched(build_batch(ROWS), **fields)
    with pytest.raises(ApiError) as caught:
        read_header(data)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("size", range(HEADER_SIZE))
def test_too_few_bytes(size: int) -> None:
    with pytest.raises(ApiError, match=f"{size} bytes are too few") as caught:
        read_header(build_batch(ROWS)[:size])
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("magic", [0, 1])
def test_a_legacy_message_reads_as_a_batch_of_one(magic: int) -> None:
    timestamp = b"" if magic == 0 else struct.pack(">q", 123)
    body = struct.pack(">bb", magic, 0x7A) + timestamp + struct.pack(">ii", -1, -1)
    message = struct.pack(">qiI", 55, 4 + len(body), 99) + body
    expected = BatchHeader(
        55, 4 + len(body), -1, magic, 99, 0x02 if magic == 0 else 0x0A, 0,
        -1 if magic == 0 else 123, -1 if magic == 0 else 123, -1, -1, -1, -1,
    )  # fmt: skip
    assert list(iter_headers(message * 2)) == [(0, expected), (len(message), expected)]
    labels = ["NoTimestampType", "LogAppendTime"]
    assert expected.timestamp_type.label == labels[magic]
    assert not expected.is_control


def test_header_struct_has_no_padding() -> None:
    assert HEADER.size == HEADER_SIZE == 61


def test_the_producer_of_a_transactional_batch_and_of_nothing_else() -> None:
    def batch(**fields: Any) -> bytes:
        return build_batch([RecordData(None, b"v", 1)], **fields)

    producer = {"producer_id": 7, "producer_epoch": 3, "base_sequence": 0}
    header = transactional_header(batch(**producer, is_transactional=True))
    assert header is not None
    assert (header.producer_id, header.producer_epoch) == (7, 3)
    assert transactional_header(batch(**producer)) is None
    assert transactional_header(batch()) is None
    whole = batch(**producer, is_transactional=True)
    for refused in (whole[:60], whole[:-1], whole + b"x"):
        # Its sequence must not be remembered as the first of a transaction.
        assert transactional_header(refused) is None
    assert transactional_header(b"") is None
    assert transactional_header(b"\xff" * 16 + b"\x01" + b"\xff" * 60) is None, "an old format"
