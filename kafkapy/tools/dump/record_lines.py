"""Formats the record lines of `dump-log-segments`, batch by batch.

Hot file: a record of format v2 is converted from bytes to its line without intermediate objects.
Lines are `str` decoded as latin-1, one character for each byte, so payloads are unchanged. The
caller encodes them to bytes again.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from kafkapy.record.batch_header import BatchHeader

_SEQUENCE_MASK: Final = 0x7FFFFFFF
_VARINT_BITS: Final = 70

# timestamp delta, offset delta, key, value, names of the headers
_Row = tuple[int, int, str | None, str | None, str]


class Gap(NamedTuple):
    """Adjacent records of the log with a gap between their offsets."""

    offset: int
    next_offset: int


class Lines(NamedTuple):
    """Lines of one batch (latin-1, see the module), its gaps, its first and last offset."""

    text: str
    gaps: list[Gap]
    first_offset: int
    last_offset: int


def record_lines(
    payload: bytes, header: BatchHeader, *, metadata: bool, contents: bool
) -> Lines | None:
    """The lines of a v2 batch that has records and is not a control batch. `payload` is
    decompressed.

    None if a record is malformed: the general path then reports the fault.
    """
    try:
        rows = list(_rows(payload, header.record_count))
    except (IndexError, ValueError):
        return None
    base = header.base_offset
    gaps = _gaps([base + row[1] for row in rows])
    lines = _full_lines(rows, header, contents) if metadata else _bare_lines(rows, contents)
    lines.append("")
    return Lines("\n".join(lines), gaps, base + rows[0][1], base + rows[-1][1])


def _gaps(offsets: list[int]) -> list[Gap]:
    if offsets == list(range(offsets[0], offsets[0] + len(offsets))):
        return []
    return [Gap(*pair) for pair in pairwise(offsets) if pair[1] != pair[0] + 1]


def _full_lines(rows: list[_Row], header: BatchHeader, contents: bool) -> list[str]:
    base_offset, base_sequence = header.base_offset, header.base_sequence
    base_timestamp, label = header.base_timestamp, header.timestamp_type.label
    append_time = header.max_timestamp if header.is_log_append_time else None
    sequence = base_sequence
    lines: list[str] = []
    for timestamp_delta, delta, key, value, headers in rows:
        timestamp = base_timestamp + timestamp_delta if append_time is None else append_time
        if base_sequence >= 0:
            sequence = (base_sequence + delta) & _SEQUENCE_MASK
        line = (
            f"| offset: {base_offset + delta} {label}: {timestamp}"
            f" keySize: {-1 if key is None else len(key)}"
            f" valueSize: {-1 if value is None else len(value)}"
            f" sequence: {sequence} headerKeys: [{headers}]"
        )
        if contents:
            if key is not None:
                line = f"{line} key: {key}"
            if value is not None:
                line = f"{line} payload: {value}"
        lines.append(line)
    return lines


def _bare_lines(rows: list[_Row], contents: bool) -> list[str]:
    """Lines without metadata. Kafka prints the bar only before a key."""
    if not contents:
        return [""] * len(rows)
    return [
        ("" if row[2] is None else f"| key: {row[2]}")
        + ("" if row[3] is None else f" payload: {row[3]}")
        for row in rows
    ]


def _rows(data: bytes, count: int) -> Iterator[_Row]:
    """The parts of each record. Raises IndexError or ValueError unless `data` is `count` records.

    Every number is a zigzag varint. Most have one byte; that case is inlined.
    """
    text = data.decode("latin-1")
    size, at = len(data), 0
    for _ in range(count):
        n, at = data[at], at + 1
        if n > 127:
            n, at = _varint(data, n, at)
        end = at + (n >> 1)
        n, at = data[at + 1], at + 2  # after the attributes, which are unused
        if n > 127:
            n, at = _varint(data, n, at)
        timestamp_delta = (n >> 1) ^ -(n & 1)
        delta, at = data[at], at + 1
        if delta > 127:
            delta, at = _varint(data, delta, at)
        n, at = data[at], at + 1
        if n > 127:
            n, at = _varint(data, n, at)
        key = value = None
        if not n & 1:
            start, at = at, at + (n >> 1)
            key = text[start:at]
        elif n != 1:
            raise ValueError("a negative key size")
        n, at = data[at], at + 1
        if n > 127:
            n, at = _varint(data, n, at)
        if not n & 1:
            start, at = at, at + (n >> 1)
            value = text[start:at]
        elif n != 1:
            raise ValueError("a negative value size")
        n, at = data[at], at + 1
        headers = ""
        if n:
            headers, at = _header_names(data, text, n, at)
        if at != end or end > size or delta & 1:
            raise ValueError("the sizes of a record do not agree")
        yield timestamp_delta, delta >> 1, key, value, headers
    if at != size:
        raise ValueError("bytes follow the records")


def _varint(data: bytes, byte: int, at: int) -> tuple[int, int]:
    """The varint whose first byte is `byte`, at `at - 1`, still zigzag-encoded; and its end."""
    second = data[at]
    if second < 0x80:  # most varints of several bytes have two
        return byte & 0x7F | second << 7, at + 1
    value = byte & 0x7F
    for shift in range(7, _VARINT_BITS, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ValueError("a varint is too long")


def _header_names(data: bytes, text: str, count: int, at: int) -> tuple[str, int]:
    """The names of the headers, and their end. `count` is their zigzag-encoded number, or its first
    byte.
    """
    if count > 127:
        count, at = _varint(data, count, at)
    names = []
    for _ in range(count >> 1):
        n, at = _varint(data, data[at], at + 1) if data[at] > 127 else (data[at], at + 1)
        if n & 1:
            raise ValueError("a header has no name")
        names.append(text[at : at + (n >> 1)])
        at += n >> 1
        n, at = _varint(data, data[at], at + 1) if data[at] > 127 else (data[at], at + 1)
        at += 0 if n & 1 else n >> 1
    return ",".join(names), at
