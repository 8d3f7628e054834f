"""Rows and batches that many tests need, and strategies for any rows."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from kafkapy.record.batch_header import (
    HEADER,
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    BatchHeader,
    iter_headers,
    read_header,
)
from kafkapy.record.builder import RecordData, assemble, write_header
from kafkapy.record.varint import read_varint

NOW_MS = 1_700_000_000_000

ROWS = [
    RecordData(b"key", b"value", NOW_MS, [("trace", b"1"), ("empty", b""), ("null", None)]),
    RecordData(None, b"no key", NOW_MS + 5),
    RecordData(b"tombstone", None, NOW_MS - 7),
    RecordData(b"", b"", NOW_MS, [("same", b"a"), ("same", b"b"), ("größe", b"\xff")]),
    RecordData(b"long" * 40, bytes(range(256)) * 600, NOW_MS + 1_000_000),
]


def rows(count: int, key: bytes | None = b"k") -> list[RecordData]:
    """`count` small rows, a millisecond apart."""
    return [RecordData(key, b"value %d" % i, NOW_MS + i) for i in range(count)]


_BYTES = st.none() | st.binary(max_size=300)

any_row = st.builds(
    RecordData,
    key=_BYTES,
    value=_BYTES,
    timestamp=st.integers(0, 2**41),
    headers=st.lists(st.tuples(st.text(max_size=12), _BYTES), max_size=3),
)


def patched(batch: bytes, **fields: int) -> bytes:
    """The batch with other header fields; length and CRC are correct unless they are given."""
    header = read_header(batch)._replace(**fields)
    copy = bytearray(batch)
    sealed = write_header(copy, header)
    HEADER.pack_into(copy, 0, *sealed._replace(**fields))
    return bytes(copy)


def raw_batch(payload: bytes, count: int, codec: int = 0, **fields: int) -> bytes:
    """A batch with any payload, whose header has `count` records."""
    header = BatchHeader(0, 0, -1, 2, 0, codec, count - 1, NOW_MS, NOW_MS, -1, -1, -1, count)
    return assemble(header._replace(**fields), payload)


def watched_bits(batches: bytes) -> list[int]:
    """The bits of v2 batches that the CRC covers or the format fixes: the others are of base offset
    and leader epoch, which may be anything.
    """
    found: list[int] = []
    for at, header in iter_headers(batches):
        watched = [*range(at + 8, at + LOG_OVERHEAD), *range(at + MAGIC_OFFSET, at + header.size)]
        found += [8 * byte + bit for byte in watched for bit in range(8)]
    return found


def flip(path: Path, bit: int) -> None:
    """Flip a bit of a file, the first of each byte being its lowest."""
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


def row_bytes(fields: bytes) -> bytes:
    """A record with these bytes, fewer than 64, valid or not."""
    return bytes((len(fields) << 1,)) + fields


def moved(payload: bytes, offset_delta: int) -> bytes:
    """The payload of one record, with another offset delta of one byte."""
    length, at = read_varint(payload, 0)
    delta_at = read_varint(payload, at + 1)[1]
    assert (len(payload), payload[delta_at]) == (at + length, 0)
    return payload[:delta_at] + bytes((offset_delta << 1,)) + payload[delta_at + 1 :]


def flipped(batch: bytes) -> bytes:
    """The batch with a bit of its last byte changed, and the old CRC."""
    return batch[:-1] + bytes((batch[-1] ^ 1,))
