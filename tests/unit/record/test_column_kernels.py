"""column_kernels: whatever the bytes of a batch, CORRUPT_MESSAGE or rows within it."""

from __future__ import annotations

import random

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.batch_header import Buffer
from kafkapy.record.builder import append_record
from kafkapy.record.codec import Codec
from kafkapy.record.columns import ColumnSelection, decode_columns
from kafkapy.record.compression import compress
from kafkapy.record.varint import append_varint
from tests.harness.storage.batches import raw_batch


def decoded_offsets(log: Buffer) -> list[int]:
    groups = decode_columns(log, 0, 2**62, selection=ColumnSelection(headers=True))
    return [offset for columns in groups for offset in columns.offsets.tolist()]


def expect_corrupt(log: Buffer) -> str:
    with pytest.raises(ApiError) as caught:
        decoded_offsets(log)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    return caught.value.message


def record(*numbers: int | bytes, length: int | None = None) -> bytes:
    """A record of varints and raw bytes after its attributes; `length` lies about it."""
    body = bytearray(1)
    for number in numbers:
        if isinstance(number, int):
            append_varint(body, number)
        else:
            body += number
    out = bytearray()
    append_varint(out, len(body) if length is None else length)
    return bytes(out + body)


MALFORMED = {
    "length beyond the batch": record(0, 0, -1, -1, 0, length=50),
    "length negative": record(0, 0, -1, -1, 0, length=-2),
    "length zero": record(0, 0, -1, -1, 0, length=0),
    "length short of its fields": record(0, 0, -1, 3, b"abc", 0, length=8),
    "bytes after the fields": record(0, 0, -1, -1, 0, b"more"),
    "key length below null": record(0, 0, -2, -1, 0, b"\0\0"),
    "key beyond the record": record(0, 0, 100, -1, 0, b"\0\0"),
    "value beyond the record": record(0, 0, -1, 2**40, 0, b"\0\0"),
    "offset delta negative": record(0, -1, -1, -1, 0, b""),
    "offset delta beyond the last": record(0, 1, -1, -1, 0, b""),
    "header count negative": record(0, 0, -1, -1, -1, b""),
    "header count huge": record(0, 0, -1, -1, 2**62, b""),
    "header key null": record(0, 0, -1, -1, 1, -1, -1),
    "header value beyond the record": record(0, 0, -1, -1, 1, 1, b"h", 9),
    "a varint without an end": record(b"\xff" * 30),
    "nothing but continuation bits": b"\xff" * 40,
}


@pytest.mark.parametrize("payload", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_a_malformed_record_is_never_read_past(payload: bytes, codec: Codec) -> None:
    message = expect_corrupt(raw_batch(compress(codec, payload), 1, codec, base_offset=40))
    assert "40" in message


def test_bytes_after_the_last_record() -> None:
    body = bytearray()
    append_record(body, 0, 0, b"k", b"v", ())
    expect_corrupt(raw_batch(bytes(body) + bytes(7), 1))


def test_noise_for_records_is_refused_or_read_but_never_more_than_it_claims() -> None:
    rng = random.Random(20)
    good = bytearray()
    for i in range(20):
        append_record(good, i, i, b"key", b"some value", [("h", b"x")])
    refused = 0
    codes = set()
    for _ in range(2000):
        noise = bytearray(good)
        for _ in range(rng.randint(1, 3)):
            noise[rng.randrange(len(noise))] = rng.randrange(256)
        try:
            read = decoded_offsets(raw_batch(bytes(noise), 20))
        except ApiError as error:
            codes.add(error.code)
            refused += 1
        else:
            assert len(read) == 20
    assert refused > 500
    assert codes == {ErrorCode.CORRUPT_MESSAGE}
