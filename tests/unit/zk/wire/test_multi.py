"""One layout of multis for requests and replies, as kazoo writes and reads it."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from kazoo.protocol.serialization import MultiHeader

from kafkapy.zk.wire.jute import INT, STRING, Malformed, Reader, encode
from kafkapy.zk.wire.multi import multi


class Parts(NamedTuple):
    """A multi of numbers (1) and strings (2)."""

    all: tuple[tuple[int, Any], ...]


LAYOUTS = {1: INT, 2: STRING}
END = MultiHeader(-1, True, -1).serialize()


def test_each_part_has_a_header_and_so_has_the_end() -> None:
    codec = multi(Parts, LAYOUTS)
    value = Parts(((1, 7), (2, "x")))
    data = encode(codec, value)
    number = MultiHeader(1, False, -1).serialize() + b"\0\0\0\x07"
    assert data == number + MultiHeader(2, False, -1).serialize() + b"\0\0\0\x01x" + END
    assert codec.read(Reader(data)) == value
    assert encode(codec, Parts(())) == END


def test_the_header_has_the_error_of_its_part() -> None:
    data = encode(multi(Parts, LAYOUTS, abs), Parts(((1, -101),)))
    assert data.startswith(MultiHeader(1, False, 101).serialize())


def test_an_operation_that_cannot_be_a_part() -> None:
    data = MultiHeader(3, False, -1).serialize() + END
    with pytest.raises(Malformed, match="Operation 3 cannot be part of a multi"):
        multi(Parts, LAYOUTS).read(Reader(data))
