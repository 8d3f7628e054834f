"""Hostile record batches for the fuzzer: bombs of all codecs and magics, wrong fields, old sets."""

from __future__ import annotations

import struct
from functools import cache

from kafkapy.record.batch_header import (
    ATTRIBUTES_OFFSET,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
)
from kafkapy.record.builder import RecordData, append_record, build_batch
from kafkapy.record.checksum import crc32c
from kafkapy.record.codec import Codec
from kafkapy.record.compression import compress
from kafkapy.record.varint import append_varint
from tests.harness.storage.legacy_messages import message, wrapper

BOMB_BYTES = 48 << 20
BOMB_RECORDS = 500_000
FRAME_BYTES_MAX = 1_000_000
_NOW_MS = 1_767_225_600_000


def batch(
    payload: bytes, count: int, codec: Codec = Codec.NONE, last_delta: int | None = None
) -> bytes:
    """A v2 batch with a correct length and CRC, whatever its payload is."""
    delta = count - 1 if last_delta is None else last_delta
    fields = BatchHeader(
        0, len(payload) + HEADER_SIZE - LOG_OVERHEAD, -1, MAGIC, 0, int(codec), delta,
        _NOW_MS, _NOW_MS, -1, -1, -1, count,
    )  # fmt: skip
    made = bytearray(HEADER.pack(*fields)) + payload
    crc = crc32c(memoryview(made)[ATTRIBUTES_OFFSET:])
    HEADER.pack_into(made, 0, *fields._replace(crc=crc))
    return bytes(made)


@cache
def null_records(count: int) -> bytes:
    """`count` records without key and value: 7 to 9 bytes each."""
    out = bytearray()
    for delta in range(count):
        body = bytearray(2)
        append_varint(body, delta)
        body += b"\1\1\0"
        append_varint(out, len(body))
        out += body
    return bytes(out)


@cache
def keyed_records(count: int) -> bytes:
    """`count` records with one key, which a compacted topic accepts."""
    out = bytearray()
    for delta in range(count):
        append_record(out, delta, 0, b"k", None, ())
    return bytes(out)


@cache
def hostile_batches(scale: int = 1) -> tuple[tuple[str, bytes], ...]:
    """(description, records of one partition), each within the size of one small request.

    `scale` divides the sizes, for tests: records of full size take ten seconds to build.
    """
    frame_bytes, many_records = FRAME_BYTES_MAX // scale, BOMB_RECORDS // scale
    zero_bytes = BOMB_BYTES // scale
    found: list[tuple[str, bytes]] = []
    for codec in Codec:
        name = codec.label
        many = many_records if codec is not Codec.NONE else frame_bytes // 12
        nulls, keyed = null_records(many), keyed_records(many)
        found.append((f"{name}: {many} null records", batch(compress(codec, nulls), many, codec)))
        found.append((f"{name}: {many} keyed records", batch(compress(codec, keyed), many, codec)))
        same = null_records(1) * many
        found.append((f"{name}: {many} times a record", batch(compress(codec, same), many, codec)))
        if codec is not Codec.NONE:
            zeros = compress(codec, bytes(zero_bytes))
            found.append((f"{name}: {zero_bytes} zeros", batch(zeros, 1, codec)))
            found.append((f"{name}: not compressed", batch(b"\0" * 1000, 1, codec)))
        found.append((f"{name}: count of 2^31-1", batch(compress(codec, b"\0"), 2**31 - 1, codec)))
        for magic in (0, 1):
            found += legacy_sets(codec, magic, frame_bytes, many_records)
    headers = [(f"h{n}", b"") for n in range(frame_bytes // 10)]
    found.append(
        (f"{len(headers)} headers", build_batch([RecordData(b"k", b"v", _NOW_MS, headers)]))
    )
    found.append(("one record", build_batch([RecordData(b"k", b"v", _NOW_MS)])))
    found.append(("two batches", build_batch([RecordData(b"k", b"v", _NOW_MS)]) * 2))
    found.append(("a batch cut short", build_batch([RecordData(b"k", b"v", _NOW_MS)])[:-1]))
    found.append(("a header only", batch(b"", 0, last_delta=0)))
    found.append(("a wrong magic", b"\0" * 16 + b"\7" + b"\0" * 60))
    found.append(("nothing", b""))
    return tuple((what, data) for what, data in found if len(data) <= FRAME_BYTES_MAX)


def legacy_sets(codec: Codec, magic: int, frame_bytes: int, many: int) -> list[tuple[str, bytes]]:
    """Message sets of before 0.11: flat ones, and wrappers that hold many."""
    name = f"magic {magic} {codec.label}"
    if codec is Codec.NONE:
        one = message(magic, 0, None, None, timestamp=_NOW_MS)
        return [(f"{name}: many", one * (frame_bytes // len(one)))]
    if codec is Codec.ZSTD:
        return []
    one = message(magic, 0, b"k", None, timestamp=_NOW_MS)
    found = []
    for count in (100, many):
        inner = numbered(one, count)
        found.append((f"{name}: {count} messages", wrapper(magic, codec, inner)))
    inner = one * many
    found.append((f"{name}: {many} times a message", wrapper(magic, codec, inner)))
    few = wrapper(magic, codec, one)
    found.append((f"{name}: many wrappers", few * (frame_bytes // len(few))))
    return found


def numbered(one: bytes, count: int) -> bytes:
    """`count` copies of `one`, with the offsets 0, 1, ..."""
    rest = one[8:]
    return b"".join([struct.pack(">q", offset) + rest for offset in range(count)])
