"""Indexes the rows of a v2 batch without decoding them, for the log cleaner.

One loop without calls fills parallel lists: a record costs a sixth of the time of `batch_records`.
Only a row's length, offset, timestamp and key are read, and whether it has a value; the other bytes
are kept as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafkapy.record.batch_header import INT64_MAX, INT64_MIN, BatchHeader, Buffer
from kafkapy.record.records import malformed, records_payload
from kafkapy.record.varint import read_varint

_NULL = 1  # the zigzag of -1, as the length of a key or a value


class RowIndex(NamedTuple):
    """The rows of one batch, by position. `ends[i]` is the end of row i in `payload`."""

    payload: bytes
    offsets: list[int]
    timestamp_deltas: list[int]
    keys: list[bytes | None]
    ends: list[int]
    tombstones: list[int]  # the positions of those without a value

    def slices(self, kept: Sequence[int]) -> bytes:
        """The bytes of some rows, given by ascending position."""
        payload, ends = self.payload, self.ends
        return b"".join([payload[ends[i - 1] if i else 0 : ends[i]] for i in kept])


def index_rows(buf: Buffer, header: BatchHeader, position: int = 0) -> RowIndex:
    """The rows of the v2 batch at `position`.

    Raises:
        ApiError: CORRUPT_MESSAGE (does not decompress), INVALID_RECORD (a row does not fit).
    """
    data = records_payload(buf, header, position)
    index = RowIndex(data, [], [], [], [], [])
    try:
        at = _fill(index, header)
    except (IndexError, ValueError) as error:
        raise malformed(header, len(index.ends), str(error)) from None
    if at != len(data):
        raise malformed(header, header.record_count, f"{len(data) - at} bytes follow the records")
    deltas, base_timestamp = index.timestamp_deltas, header.base_timestamp
    for bound in (min, max) if deltas else ():
        delta = bound(deltas)
        if not INT64_MIN <= base_timestamp + delta <= INT64_MAX:
            reason = f"timestamp delta {delta} is out of bounds"
            raise malformed(header, deltas.index(delta), reason)
    return index


def _fill(index: RowIndex, header: BatchHeader) -> int:
    """Fill the lists. Returns the end of the last row. Raises IndexError or ValueError."""
    data, offsets, timestamp_deltas, keys, ends, tombstones = index
    size, base_offset, last_delta = len(data), header.base_offset, header.last_offset_delta
    at = 0
    # Varints of one byte, which are most, and lengths of two bytes are read in place. n is
    # zigzag-encoded: numbers that are not negative are even.
    for row in range(header.record_count):
        n = data[at]
        at += 1
        if n > 0x7F:
            high = data[at]
            at += 1
            if high > 0x7F:
                n, at = _varint(data, at - 2)
            else:
                n += (high << 7) - 0x80
        end = at + (n >> 1)
        if n & 1 or not at < end <= size:
            raise ValueError(f"length {(n >> 1) ^ -(n & 1)} is out of bounds")
        at += 1  # the attributes byte is not in use
        n = data[at]
        at += 1
        if n > 0x7F:
            n, at = _varint(data, at - 1)
        timestamp_deltas.append((n >> 1) ^ -(n & 1))
        n = data[at]
        at += 1
        if n > 0x7F:
            n, at = _varint(data, at - 1)
        if n & 1 or n >> 1 > last_delta:
            raise ValueError(f"offset delta {(n >> 1) ^ -(n & 1)} is not one of the batch's")
        offsets.append(base_offset + (n >> 1))
        n = data[at]
        at += 1
        if n > 0x7F:
            n, at = _varint(data, at - 1)
        if n == _NULL:
            keys.append(None)
        else:
            stop = at + (n >> 1)
            if n & 1 or stop > end:
                raise ValueError(f"field length {(n >> 1) ^ -(n & 1)} is out of bounds")
            keys.append(data[at:stop])
            at = stop
        if data[at] == _NULL:
            tombstones.append(row)
        ends.append(end)
        at = end
    return at


def index_keys(
    buf: Buffer, header: BatchHeader, position: int = 0
) -> tuple[Sequence[int], list[bytes | None]]:
    """The offsets and the keys of the v2 batch at `position`, in two thirds of the time of
    `index_rows`.

    Raises:
        ApiError: CORRUPT_MESSAGE (does not decompress), INVALID_RECORD (a row does not fit).
    """
    data = records_payload(buf, header, position)
    deltas: list[int] = []  # zigzag
    keys: list[bytes | None] = []
    try:
        at = _fill_keys(data, header, deltas, keys)
    except (IndexError, ValueError) as error:
        raise malformed(header, len(keys), str(error)) from None
    if at != len(data):
        raise malformed(header, header.record_count, f"{len(data) - at} bytes follow the records")
    base_offset = header.base_offset
    if deltas:
        return [base_offset + (n >> 1) for n in deltas], keys
    if len(keys) > header.last_offset_delta + 1:
        raise malformed(header, len(keys), "more records than offsets")
    return range(base_offset, base_offset + len(keys)), keys


def _fill_keys(
    data: bytes, header: BatchHeader, deltas: list[int], keys: list[bytes | None]
) -> int:
    """As `_fill`, for keys. Fills `deltas` only if they are not 0, 1, 2 and so on."""
    size, last_delta, take = len(data), header.last_offset_delta, keys.append
    at = expected = 0
    for _ in range(header.record_count):
        n = data[at]
        if n <= 0x7F:
            at += 1
        elif (high := data[at + 1]) <= 0x7F:
            n += (high << 7) - 0x80
            at += 2
        else:
            n, at = _varint(data, at)
        end = at + (n >> 1)
        if n & 1 or not at < end <= size:
            raise ValueError(f"length {(n >> 1) ^ -(n & 1)} is out of bounds")
        at += 2  # skip the unused attributes byte, and a timestamp of one byte
        if data[at - 1] > 0x7F:
            _, at = _varint(data, at - 1)
        n = data[at]
        if n <= 0x7F:
            at += 1
        elif (high := data[at + 1]) <= 0x7F:
            n += (high << 7) - 0x80
            at += 2
        else:
            n, at = _varint(data, at)
        if n != expected or deltas:
            if n & 1 or n >> 1 > last_delta:
                raise ValueError(f"offset delta {(n >> 1) ^ -(n & 1)} is not one of the batch's")
            if not deltas:
                deltas += range(0, expected, 2)
            deltas.append(n)
        expected += 2
        n = data[at]
        if n <= 0x7F:
            at += 1
        else:
            n, at = _varint(data, at)
        if n == _NULL:
            take(None)
        else:
            stop = at + (n >> 1)
            if n & 1 or stop > end:
                raise ValueError(f"field length {(n >> 1) ^ -(n & 1)} is out of bounds")
            take(data[at:stop])
        at = end
    return at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A varint, still zigzag-encoded, and its end."""
    high = data[at + 1]
    if high <= 0x7F:
        return data[at] + (high << 7) - 0x80, at + 2
    value, at = read_varint(data, at)
    return value << 1 if value >= 0 else (-value << 1) - 1, at
