"""Fields as bytes: what is read back, what is null, and bytes that are cut or lie about sizes."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.zk.wire.jute import (
    BOOL,
    BUFFER,
    INT,
    LONG,
    STRING,
    Codec,
    Malformed,
    Reader,
    encode,
    packed,
    record,
    vector,
)


class Pair(NamedTuple):
    number: int
    text: str


class Point(NamedTuple):
    x: int
    y: int


ints = st.integers(-(2**31), 2**31 - 1)
texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.one_of(
    st.tuples(st.just(INT), ints),
    st.tuples(st.just(LONG), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just(BOOL), st.booleans()),
    st.tuples(st.just(BUFFER), st.none() | st.binary()),
    st.tuples(st.just(STRING), texts),
    st.tuples(st.just(vector(STRING)), st.lists(texts).map(tuple)),
    st.tuples(st.just(record(Pair, INT, STRING)), st.builds(Pair, ints, texts)),
    st.tuples(st.just(packed(Point, ">ii")), st.builds(Point, ints, ints)),
)


@given(values)
def test_what_was_written_is_read(case: tuple[Codec[Any], Any]) -> None:
    codec, value = case
    data = encode(codec, value)
    reader = Reader(data)
    assert codec.read(reader) == value
    assert reader.at_end()
    for size in range(len(data)):
        with pytest.raises(Malformed):
            codec.read(Reader(data[:size]))


def test_null() -> None:
    null = b"\xff\xff\xff\xff"
    assert encode(BUFFER, None) == null
    assert BUFFER.read(Reader(null)) is None
    assert STRING.read(Reader(null)) == ""
    assert vector(INT).read(Reader(null)) == ()


@pytest.mark.parametrize("size", [b"\xff\xff\xff\xfe", b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00"])
@pytest.mark.parametrize("codec", [BUFFER, STRING, vector(LONG)])
def test_sizes_that_cannot_be(codec: Codec[Any], size: bytes) -> None:
    with pytest.raises(Malformed):
        codec.read(Reader(size + b"1234"))


def test_text_that_is_not_utf_8_is_read_as_java_reads_it() -> None:
    assert STRING.read(Reader(b"\0\0\0\3/\xff/")) == "/\ufffd/"
