"""Frames out of bytes that arrive in any pieces, and lengths that end a connection."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.zk.wire.frames import MAX_BYTES, FrameCutter, framed
from kafkapy.zk.wire.jute import Malformed


def frames_of(cutter: FrameCutter) -> list[bytes]:
    return list(iter(cutter.next_frame, None))


@given(st.lists(st.binary(max_size=20)), st.integers(1, 9))
def test_frames_in_any_pieces(payloads: list[bytes], size: int) -> None:
    data = b"".join(map(framed, payloads))
    cutter, found = FrameCutter(), []
    for start in range(0, len(data), size):
        cutter.feed(data[start : start + size])
        found += frames_of(cutter)
    assert found == payloads
    assert cutter.head() == b""


@pytest.mark.parametrize("length", [b"\x00\x10\x00\x00", b"\xff\xff\xff\xff", b"GET "])
def test_a_length_out_of_range(length: bytes) -> None:
    cutter = FrameCutter()
    cutter.feed(length)
    assert cutter.head() == length
    with pytest.raises(Malformed, match=f"the limit is {MAX_BYTES}"):
        cutter.next_frame()


def test_the_longest_frame() -> None:
    cutter = FrameCutter(10)
    cutter.feed(framed(b"0123456789"))
    assert cutter.next_frame() == b"0123456789"
