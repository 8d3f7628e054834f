"""Frames out of bytes that arrive in any pieces, and lengths that end a connection."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.zk.wire.frames import MAX_BYTES, FrameDecoder, encode_frame
from kafkapy.zk.wire.jute import Malformed


def frames_of(decoder: FrameDecoder) -> list[bytes]:
    return list(iter(decoder.next_frame, None))


@given(st.lists(st.binary(max_size=20)), st.integers(1, 9))
def test_frames_in_any_pieces(payloads: list[bytes], size: int) -> None:
    data = b"".join(map(encode_frame, payloads))
    decoder, found = FrameDecoder(), []
    for start in range(0, len(data), size):
        decoder.feed(data[start : start + size])
        found += frames_of(decoder)
    assert found == payloads
    assert decoder.head() == b""


@pytest.mark.parametrize("length", [b"\x00\x10\x00\x00", b"\xff\xff\xff\xff", b"GET "])
def test_a_length_out_of_range(length: bytes) -> None:
    decoder = FrameDecoder()
    decoder.feed(length)
    assert decoder.head() == length
    with pytest.raises(Malformed, match=f"the limit is {MAX_BYTES}"):
        decoder.next_frame()


def test_the_longest_frame() -> None:
    decoder = FrameDecoder(10)
    decoder.feed(encode_frame(b"0123456789"))
    assert decoder.next_frame() == b"0123456789"
