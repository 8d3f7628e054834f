"""Multis, in requests and replies: a header before each part, and one that marks the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from kafkapy.zk.wire.jute import Codec, Malformed, Reader, Row, packed


class MultiHeader(NamedTuple):
    """The header of each operation and each result of a multi, and the mark of its end."""

    op: int
    done: bool
    error: int


_HEADER: Final = packed(MultiHeader, ">i?i")
_END: Final = MultiHeader(-1, True, -1)


def multi(
    kind: type[Row],
    parts: Mapping[int, Codec[Any]],
    error_of: Callable[[Any], int] = lambda _: -1,
) -> Codec[Row]:
    """A record whose only field is a tuple of operations, each with its part.

    `parts` are the layouts by operation; `error_of` gives the error in the header of a part.
    """

    def read(reader: Reader) -> Row:
        found = []
        while not (header := _HEADER.read(reader)).done:
            codec = parts.get(header.op)
            if codec is None:
                raise Malformed(f"Operation {header.op} cannot be part of a multi")
            found.append((header.op, codec.read(reader)))
        return kind(tuple(found))

    def write(out: bytearray, value: Row) -> None:
        for op, part in value[0]:
            _HEADER.write(out, MultiHeader(op, False, error_of(part)))
            parts[op].write(out, part)
        _HEADER.write(out, _END)

    return Codec(read, write)
