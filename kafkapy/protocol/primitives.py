"""Primitives of the wire format: unsigned varints, buffers, and helpers for generated code.

All numbers are big-endian. A uvarint has 7 bits per byte, low bits first, in at most 5 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from struct import Struct
from typing import Final, TypeAlias

from kafkapy.common.errors import ProtocolViolation

Buffer: TypeAlias = bytes | bytearray | memoryview
Records: TypeAlias = Buffer | list[Buffer]
"""Record batches in their on-disk format: one buffer, or several to be sent one after another."""

COPY_BELOW: Final = 2048
"""Smaller records are copied next to the fields around them. Larger ones are not copied."""

TAGGED_FIELDS_MAX: Final = 1024
"""The limit of unknown tagged fields in one section. The newest messages of Kafka have a handful.
To skip 10 MB of them took a second."""

STRING_BYTES_MAX: Final = 32767
"""The largest length of a string (INT16). As in Kafka, it is also the limit of compact strings."""

ONE_BYTE_UVARINT: Final = tuple(bytes([n]) for n in range(128))


def uvarint(n: int) -> bytes:
    """Encode `n` (0 <= n < 2**35)."""
    if n < 1 << 14:  # nearly always
        return bytes((n,)) if n < 128 else bytes((n & 127 | 128, n >> 7))
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def rest_of_uvarint(buf: Buffer, position: int, first: int) -> tuple[int, int]:
    """Finish a uvarint whose first byte (above 127) was read; returns (value, next position).

    Raises:
        ProtocolViolation: it has more than 5 bytes.
        IndexError: the buffer ends inside it.
    """
    value = first & 127
    for shift in (7, 14, 21, 28):
        byte = buf[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
    raise ProtocolViolation("a uvarint has more than 5 bytes")


def read_uvarint(buf: Buffer, position: int) -> tuple[int, int]:
    """Decode a uvarint; returns (value, next position). Raises as `rest_of_uvarint`."""
    first = buf[position]
    if first < 128:
        return first, position + 1
    return rest_of_uvarint(buf, position + 1, first)


def replaced_text(raw: bytes) -> str:
    """A string that is not UTF-8, with replacements as in Java: clients send such names and
    metadata.

    Raises:
        ProtocolViolation: the result is too long for a message, since a replacement has three
            bytes.
    """
    text = raw.decode(errors="replace")
    if len(text.encode()) > STRING_BYTES_MAX:
        raise ProtocolViolation(f"a string of {len(raw)} bytes that are not UTF-8")
    return text


def compact_bytes(buf: memoryview, position: int, end: int) -> memoryview | None:
    """The compact bytes from `position` to `end`; None if they are null, or do not end there. Hot:
    a uvarint of one byte is read here."""
    size = buf[position]
    if size < 128:
        position += 1
    else:
        try:
            size, position = rest_of_uvarint(buf, position + 1, size)
        except ProtocolViolation:
            return None
    # `size` is the length plus 1; 0 is null.
    return buf[position:end] if size and end - position == size - 1 else None


def skip_tagged_fields(buf: Buffer, position: int) -> tuple[int, int]:
    """Skip a section of unknown tagged fields (KIP-482).

    Returns the number of fields and the position after them. Raises as `rest_of_uvarint`, and for
    more than TAGGED_FIELDS_MAX fields.
    """
    count, position = read_uvarint(buf, position)
    if count > TAGGED_FIELDS_MAX:
        raise ProtocolViolation(f"{count} tagged fields in one section")
    for _ in range(count):
        _, position = read_uvarint(buf, position)
        size, position = read_uvarint(buf, position)
        position += size
    if position > len(buf):
        raise ProtocolViolation("tagged fields end after the frame")
    return count, position


def tagged_field(tag: int, chunks: list[bytes]) -> bytes:
    """One tagged field: its tag, its size, its value."""
    value = b"".join(chunks)
    return uvarint(tag) + uvarint(len(value)) + value


def tagged_fields(fields: list[bytes]) -> bytes:
    """The section that ends a flexible struct; `fields` are in the order of their tags."""
    return uvarint(len(fields)) + b"".join(fields)


def write_records(
    records: Records | None, size: int, chunks: list[Buffer], parts: list[Buffer]
) -> None:
    """Append `records` to `chunks`, to be copied, if small; else move both to `parts`."""
    if records is None:
        return
    if size >= COPY_BELOW:
        parts.append(b"".join(chunks))
        chunks.clear()
        chunks = parts
    if isinstance(records, list):
        chunks += records
    else:
        chunks.append(records)


FEW: Final = 16
"""Number arrays shorter than this (replica lists) have precompiled layouts."""


@cache
def few_numbers(code: str) -> tuple[Struct, ...]:
    """The layouts of 0 to FEW - 1 numbers of one type. With two letters, the first is a prefix."""
    return tuple(Struct(f">{code[:-1]}{count}{code[-1]}") for count in range(FEW))


def read_numbers(code: str, count: int, buf: Buffer, position: int) -> tuple[int, ...]:
    """Decode `count` numbers."""
    return Struct(f">{count}{code}").unpack_from(buf, position)


def write_numbers(code: str, numbers: Sequence[int] | None, flexible: bool) -> bytes:
    """Encode a number array with its count."""
    count = -1 if numbers is None else len(numbers)
    prefix = uvarint(count + 1) if flexible else count.to_bytes(4, "big", signed=True)
    return prefix + Struct(f">{max(count, 0)}{code}").pack(*numbers or ())
