"""The check of every record of a batch, for appends to compacted topics.

Every reader can read a batch that passes: `records`, `row_index`, `columns` and Kafka's
`DefaultRecord.readFrom`. The rules are the strictest of these readers: lengths and counts take at
most 5 bytes, timestamps fit 64 bits.

Hot file: one loop that builds nothing and reads varints of one and two bytes in place.
"""

from __future__ import annotations

from typing import Final

from kafkapy.record.batch_header import INT64_MAX, INT64_MIN, BatchHeader
from kafkapy.record.records import malformed
from kafkapy.record.varint import read_varint

_NULL: Final = 1  # the zigzag of -1, as the length of a key or a value
_INT_BYTES_MAX: Final = 5
_SAFE_TIMESTAMP_MAX: Final = 2**62


def check_records(data: bytes, header: BatchHeader) -> list[int]:
    """Check that `data`, decompressed, is the records that `header` counts and nothing else.

    Their offset deltas must be 0, 1, 2 and so on. Returns the indexes of the records without a key.

    Raises:
        ApiError: INVALID_RECORD, for the first record that is malformed.
    """
    without_key: list[int] = []
    end = _check(data, header, without_key)
    if end != len(data):
        reason = f"{len(data) - end} bytes follow the last record"
        raise malformed(header, header.record_count, reason)
    return without_key


def _check(data: bytes, header: BatchHeader, without_key: list[int]) -> int:
    """Check as many records as `header` counts. Returns the end of the last one."""
    size, base_timestamp = len(data), header.base_timestamp
    # If no delta of one or two bytes can overflow, only longer ones are checked.
    short = 0x7F if -_SAFE_TIMESTAMP_MAX < base_timestamp < _SAFE_TIMESTAMP_MAX else -1
    at = index = 0
    try:
        for index in range(header.record_count):
            n = data[at]  # zigzag, as all below: even unless negative
            at += 1
            if n > 0x7F:
                n, at = (n + data[at] * 128 - 128, at + 1) if data[at] < 128 else _int(data, at - 1)
            end = at + (n >> 1)
            if n & 1 or end > size:
                raise _out_of_bounds("length", n)
            at += 2  # the unused attributes byte, and the timestamp's first byte
            if data[at - 1] > short:
                at = at + 1 if data[at] <= short else _after_timestamp(data, at - 1, base_timestamp)
            n = data[at]
            at += 1
            if n > 0x7F:
                n, at = (n + data[at] * 128 - 128, at + 1) if data[at] < 128 else _int(data, at - 1)
            if n != index << 1:
                raise ValueError(f"offset delta {_signed(n)} is not consecutive")
            n = data[at]
            at += 1
            if n > 0x7F:
                n, at = _int(data, at - 1)
            if n == _NULL:
                without_key.append(index)
            else:
                at += n >> 1
                if n & 1 or at > end:
                    raise _out_of_bounds("field length", n)
            n = data[at]
            at += 1
            if n > 0x7F:
                n, at = (n + data[at] * 128 - 128, at + 1) if data[at] < 128 else _int(data, at - 1)
            if n != _NULL:
                at += n >> 1
                if n & 1 or at > end:
                    raise _out_of_bounds("field length", n)
            at += 1
            if data[at - 1]:
                at = _after_headers(data, at - 1, end)
            if at != end:
                raise ValueError(f"its length says {end - at} more bytes than its fields")
    except (IndexError, ValueError) as error:
        raise malformed(header, index, str(error)) from None
    return at


def _int(data: bytes, at: int) -> tuple[int, int]:
    """A varint of 32 bits, still zigzag-encoded, and its end."""
    high = data[at + 1]
    if high <= 0x7F:
        return data[at] + (high << 7) - 0x80, at + 2
    value, end = read_varint(data, at)
    if end - at > _INT_BYTES_MAX:
        raise ValueError("a varint is longer than 5 bytes")
    return value << 1 ^ value >> 63, end


def _after_timestamp(data: bytes, at: int, base_timestamp: int) -> int:
    delta, at = read_varint(data, at)
    if not INT64_MIN <= base_timestamp + delta <= INT64_MAX:
        raise ValueError(f"timestamp delta {delta} is out of bounds")
    return at


def _after_headers(data: bytes, at: int, end: int) -> int:
    """The end of a record's headers. Their number is at `at`."""
    n, at = _int(data, at) if data[at] > 0x7F else (data[at], at + 1)
    if n & 1 or n >> 1 > end - at:
        raise _out_of_bounds("header count", n)
    for _ in range(n >> 1):
        n, at = _int(data, at) if data[at] > 0x7F else (data[at], at + 1)
        if n == _NULL:
            raise ValueError("a header key is null")
        at += n >> 1
        if n & 1 or at > end:
            raise _out_of_bounds("field length", n)
        n, at = _int(data, at) if data[at] > 0x7F else (data[at], at + 1)
        if n != _NULL:
            at += n >> 1
            if n & 1 or at > end:
                raise _out_of_bounds("field length", n)
    return at


def _out_of_bounds(field: str, zigzag: int) -> ValueError:
    return ValueError(f"{field} {_signed(zigzag)} is out of bounds")


def _signed(zigzag: int) -> int:
    return (zigzag >> 1) ^ -(zigzag & 1)
