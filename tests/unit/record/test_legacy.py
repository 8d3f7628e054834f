"""v0/v1 message sets: single messages, wrappers with absolute and relative offsets, the lz4 bug."""

from __future__ import annotations

import struct
from zlib import crc32

import cramjam
import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.batch_header import TimestampType, iter_headers, read_header
from kafkapy.record.codec import Codec
from kafkapy.record.compression import compress, decompress
from kafkapy.record.legacy import (
    Message,
    read_messages,
    validate_message_crc,
    with_standard_lz4_checksum,
)
from kafkapy.record.records import iter_records
from tests.harness.storage.legacy_messages import message, message_set, old_lz4, wrapper

CREATE = TimestampType.CREATE_TIME
NONE = TimestampType.NO_TIMESTAMP_TYPE


@pytest.mark.parametrize(
    ("magic", "expected"),
    [(0, Message(7, -1, NONE, b"k", None, 0)), (1, Message(7, 1234, CREATE, b"k", None, 0))],
)
def test_a_single_message(magic: int, expected: Message) -> None:
    data = message(magic, 7, b"k", None, timestamp=1234)
    header = read_header(data)
    validate_message_crc(data, header)
    assert list(read_messages(data, header)) == [expected._replace(crc=header.crc)]


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrapper_gives_its_messages_with_absolute_offsets(magic: int, codec: Codec) -> None:
    inner_offsets = [100, 101, 103] if magic == 0 else [0, 1, 3]
    inner = message_set(magic, inner_offsets)
    data = wrapper(magic, codec, inner, offset=103, timestamp=1003)
    records = list(iter_records(data))
    assert [record.offset for record in records] == [100, 101, 103]
    assert [record.value for record in records] == [b"value 0", b"value 1", b"value 2"]
    expected = [-1, -1, -1] if magic == 0 else [1000, 1001, 1002]
    assert [record.timestamp for record in records] == expected


def test_a_wrapper_from_a_producer_that_left_its_offset_zero() -> None:
    data = wrapper(1, Codec.GZIP, message_set(1, [0, 1, 2]), offset=0)
    assert [record.offset for record in iter_records(data)] == [0, 1, 2]


def test_the_time_of_a_log_append_time_wrapper_is_every_messages() -> None:
    inner = message_set(1, [0, 1])
    data = wrapper(1, Codec.GZIP, inner, offset=9, timestamp=5555, log_append_time=True)
    times = {(record.timestamp, record.timestamp_type) for record in iter_records(data)}
    assert times == {(5555, TimestampType.LOG_APPEND_TIME)}


def test_lz4_in_v0_may_have_the_wrong_header_checksum() -> None:
    inner = message_set(0, [0, 1])
    frame = compress(Codec.LZ4, inner)
    broken = old_lz4(frame)
    assert broken != frame
    with pytest.raises(ApiError):
        decompress(Codec.LZ4, broken)
    assert with_standard_lz4_checksum(broken) == with_standard_lz4_checksum(frame) == frame
    for value in (broken, frame):
        data = message(0, 1, None, value, attributes=Codec.LZ4)
        assert len(list(iter_records(data))) == 2
    with pytest.raises(ApiError):  # v1 knows only the right one
        list(iter_records(message(1, 1, None, broken, attributes=Codec.LZ4)))


@pytest.mark.parametrize("flags", [0x00, 0x08, 0x10, 0x04, 0x20])
def test_the_mended_checksum_is_the_one_of_the_lz4_library(flags: int) -> None:
    compressor = cramjam.lz4.Compressor(
        content_checksum=bool(flags & 0x04), block_linked=not flags & 0x20
    )
    compressor.compress(b"some content")
    frame = bytes(compressor.finish())
    assert with_standard_lz4_checksum(frame) == frame
    assert with_standard_lz4_checksum(frame[:6] + b"\xff" + frame[7:]) == frame


def test_a_header_with_content_size_is_mended_behind_it() -> None:
    frame = bytes(cramjam.lz4.compress(b"x" * 100))  # cramjam's own frame has no content size
    sized = frame[:4] + bytes([frame[4] | 8]) + frame[5:6] + struct.pack("<q", 100) + b"?"
    mended = with_standard_lz4_checksum(sized + frame[7:])
    assert bytes(cramjam.lz4.decompress(mended)) == b"x" * 100


@pytest.mark.parametrize("frame", [b"", b"\x04\x22\x4d\x18\x60", b"not lz4 at all"])
def test_what_is_no_lz4_frame_is_left_alone(frame: bytes) -> None:
    assert with_standard_lz4_checksum(frame) == frame


def test_messages_and_batches_may_follow_each_other() -> None:
    data = message(0, 0, None, b"a") + message(1, 1, None, b"b", timestamp=5)
    assert [h.magic for _, h in iter_headers(data)] == [0, 1]
    assert [record.value for record in iter_records(data)] == [b"a", b"b"]


def test_a_wrong_crc() -> None:
    data = bytearray(message(1, 7, b"k", b"v"))
    data[-1] ^= 1
    with pytest.raises(ApiError, match="stored crc") as caught:
        validate_message_crc(data, read_header(data))
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def resized(data: bytes, size: int) -> bytes:
    body = data[16:]
    return struct.pack(">qiI", 0, size, crc32(body)) + body


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (wrapper(1, Codec.GZIP, b"", offset=0), ErrorCode.INVALID_RECORD),
        (wrapper(1, Codec.GZIP, message_set(1, [0])[:-1], offset=0), ErrorCode.INVALID_RECORD),
        (wrapper(1, Codec.GZIP, message_set(0, [0]), offset=0), ErrorCode.INVALID_RECORD),
        (
            wrapper(1, Codec.GZIP, wrapper(1, Codec.GZIP, message_set(1, [0])), offset=0),
            ErrorCode.INVALID_RECORD,
        ),
        (message(1, 0, None, None, attributes=Codec.GZIP), ErrorCode.INVALID_RECORD),
        (message(1, 0, None, b"", attributes=Codec.ZSTD), ErrorCode.INVALID_RECORD),
        (message(1, 0, None, b"", attributes=6), ErrorCode.INVALID_RECORD),
        (message(1, 0, None, b"no gzip", attributes=Codec.GZIP), ErrorCode.CORRUPT_MESSAGE),
        (
            wrapper(1, Codec.GZIP, message_set(1, [0])[:-1] + b"?", offset=0),
            ErrorCode.CORRUPT_MESSAGE,
        ),
        (message(1, 0, b"key", b"value")[:-1], None),
        (resized(message(0, 0, b"k", b"v") + b"more", 4 + 16), ErrorCode.INVALID_RECORD),
    ],
)
def test_malformed_sets(data: bytes, code: ErrorCode | None) -> None:
    if code is None:  # cut off: not a whole message, so nothing is read
        assert list(iter_records(data)) == []
        return
    with pytest.raises(ApiError) as caught:
        list(iter_records(data))
    assert caught.value.code is code


@pytest.mark.parametrize(
    "lengths", [(-2, -1), (-1, -2), (100, -1), (-1, 2**31 - 1), (2**31 - 1, 0)]
)
def test_lying_field_lengths(lengths: tuple[int, int]) -> None:
    body = struct.pack(">bbii", 0, 0, *lengths)
    data = struct.pack(">qiI", 0, 4 + len(body), crc32(body)) + body
    with pytest.raises(ApiError) as caught:
        list(iter_records(data))
    assert caught.value.code is ErrorCode.INVALID_RECORD
