"""Frames from any chunking, and memory that follows the bytes that really came."""

from __future__ import annotations

from random import Random

import pytest

from kafkapy.common.errors import ProtocolViolation
from kafkapy.protocol.framing import (
    OWN_BUFFER_BYTES_MIN,
    SPARE_BUFFERS_MAX,
    SPARE_BYTES_MAX,
    FrameReader,
    ReceiveBuffers,
)

FRAME_BYTES_MAX = 1 << 30


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def feed(reader: FrameReader, data: bytes) -> list[bytes]:
    """Give `data` in one piece if it fits, else as much at a time as the reader takes."""
    frames = []
    while data:
        buffer = reader.get_buffer()
        n = min(len(buffer), len(data))
        buffer[:n] = data[:n]
        frames += [bytes(frame) for frame in reader.bytes_received(n)]
        data = data[n:]
    return frames


@pytest.mark.parametrize("seed", range(20))
def test_any_chunking_gives_the_same_frames(seed: int) -> None:
    random = Random(seed)
    sizes = [random.choice([0, 1, 5, 1000, 70_000, 200_000]) for _ in range(12)]
    payloads = [random.randbytes(size) for size in sizes]
    stream = b"".join(map(framed, payloads))
    reader = FrameReader(FRAME_BYTES_MAX, ReceiveBuffers(random.choice([4, 64, 100_000, 1 << 20])))
    chunk_max = random.choice([1 << 10, 1 << 16, 1 << 20])
    received, position = [], 0
    while position < len(stream):
        step = random.randrange(1, chunk_max)
        received += feed(reader, stream[position : position + step])
        position += step
    assert received == payloads


def test_byte_by_byte() -> None:
    reader = FrameReader(10, ReceiveBuffers(64))
    stream = framed(b"one") + framed(b"") + framed(b"two")
    assert [feed(reader, bytes([byte])) for byte in stream] == [
        *([[]] * 6 + [[b"one"]]),
        *([[]] * 3 + [[b""]]),
        *([[]] * 6 + [[b"two"]]),
    ]


def test_readers_share_their_scratch() -> None:
    buffers = ReceiveBuffers(64)
    first, second = FrameReader(99, buffers), FrameReader(99, buffers)
    assert feed(first, framed(b"first")[:6]) == []
    assert feed(second, framed(b"second")[:3]) == []
    assert feed(first, framed(b"first")[6:]) == [b"first"]
    assert feed(second, framed(b"second")[3:]) == [b"second"]


def test_a_whole_frame_is_not_copied() -> None:
    buffers = ReceiveBuffers(64)
    reader = FrameReader(99, buffers)
    data = framed(b"abc")
    reader.get_buffer()[: len(data)] = data
    (frame,) = reader.bytes_received(len(data))
    assert frame.obj is buffers.scratch


def test_frames_handed_out_outlive_the_incomplete_one_behind_them() -> None:
    """Bytes kept for later must not overwrite the frames of the same delivery."""
    reader = FrameReader(1 << 20, ReceiveBuffers(8))
    big = framed(bytes(5)) + framed(b"x" * 10) + framed(b"y" * 10) + framed(b"z" * 10)
    feed(reader, big[:8])  # the rest goes to the reader's own buffer
    rest = big[8:-3]
    buffer = reader.get_buffer()
    assert len(buffer) > len(rest)
    buffer[: len(rest)] = rest
    frames = reader.bytes_received(len(rest))
    assert [bytes(frame) for frame in frames] == [bytes(5), b"x" * 10, b"y" * 10]
    assert feed(reader, big[-3:]) == [b"z" * 10]


def test_a_lying_size_costs_nothing() -> None:
    reader = FrameReader(FRAME_BYTES_MAX, ReceiveBuffers(1024))
    feed(reader, (FRAME_BYTES_MAX).to_bytes(4, "big") + b"x")
    assert len(reader.get_buffer()) < OWN_BUFFER_BYTES_MIN
    feed(reader, bytes(300_000))
    assert len(reader.get_buffer()) <= 600_000


def test_the_buffer_is_bounded_by_the_frame() -> None:
    reader = FrameReader(FRAME_BYTES_MAX, ReceiveBuffers(1024))
    feed(reader, framed(bytes(1_000_000))[:900_000])
    assert len(reader.get_buffer()) == 4 + 1_000_000 - 900_000


def test_after_a_frame_the_own_buffer_is_given_back() -> None:
    buffers = ReceiveBuffers(1024)
    reader = FrameReader(FRAME_BYTES_MAX, buffers)
    assert feed(reader, framed(bytes(100_000))) == [bytes(100_000)]
    assert reader.get_buffer().obj is buffers.scratch


def receive_one(buffers: ReceiveBuffers, payload: bytes) -> memoryview:
    """The frame of `payload` as a new reader returns it, received in pieces."""
    reader = FrameReader(FRAME_BYTES_MAX, buffers)
    data = framed(payload)
    while True:
        buffer = reader.get_buffer()
        n = min(len(buffer), len(data))
        buffer[:n] = data[:n]
        del buffer
        data = data[n:]
        frames = reader.bytes_received(n)
        if not data:
            (frame,) = frames
            return frame


def test_the_memory_of_a_large_frame_is_used_again() -> None:
    buffers = ReceiveBuffers(1024)
    first = receive_one(buffers, b"a" * 1_000_000).obj
    assert receive_one(buffers, b"b" * 1_000_000) == b"b" * 1_000_000
    assert receive_one(buffers, b"c" * 1_000_000).obj is first


def test_memory_with_views_is_not_used_again() -> None:
    buffers = ReceiveBuffers(1024)
    kept = [receive_one(buffers, bytes([index]) * 1_000_000)[10:] for index in range(9)]
    assert [bytes(records) for records in kept] == [bytes([i]) * 999_990 for i in range(9)]


def test_few_and_small_buffers_are_kept() -> None:
    buffers = ReceiveBuffers(1024)
    sizes = [1 << 17, 1 << 18, 1 << 19, 1 << 20, SPARE_BYTES_MAX, SPARE_BYTES_MAX + 1]
    given = [buffers.take(size, size) for size in sizes]
    memory = [taken.obj for taken in given]
    while given:
        buffers.give_back(given.pop())
    again = [buffers.take(1, 1) for _ in sizes]
    kept = [len(bytes(taken.obj)) for taken in again if any(taken.obj is each for each in memory)]
    assert kept == sizes[1:-1]
    assert len(kept) == SPARE_BUFFERS_MAX


@pytest.mark.parametrize("size", [-1, -(2**31), 101, 2**31 - 1])
def test_a_size_out_of_bounds_is_refused(size: int) -> None:
    reader = FrameReader(100, ReceiveBuffers(64))
    with pytest.raises(ProtocolViolation, match=rf"frame of {size} bytes \(allowed: 0 to 100\)"):
        feed(reader, size.to_bytes(4, "big", signed=True))


def test_the_largest_frame_allowed() -> None:
    assert feed(FrameReader(100, ReceiveBuffers(64)), framed(bytes(100))) == [bytes(100)]


def test_the_bound_can_be_raised_between_frames() -> None:
    reader = FrameReader(10, ReceiveBuffers(64))
    assert feed(reader, framed(bytes(10))) == [bytes(10)]
    reader.allow(20)
    assert feed(reader, framed(bytes(20))) == [bytes(20)]
    reader.allow(10)
    with pytest.raises(ProtocolViolation, match=r"frame of 20 bytes \(allowed: 0 to 10\)$"):
        feed(reader, framed(bytes(20)))


def test_a_peer_that_begins_tls_is_told_from_others() -> None:
    client_hello = bytes.fromhex("16030102000100")
    with pytest.raises(ProtocolViolation, match="the peer begins TLS"):
        feed(FrameReader(1 << 20, ReceiveBuffers(64)), client_hello)


def test_the_size_of_a_frame_that_has_begun_is_known() -> None:
    reader = FrameReader(100, ReceiveBuffers(64))
    for data, awaited in ((b"\0\0", 0), (b"\0\x07ab", 7), (b"cdefg", 0), (b"\0\0\0\1x", 0)):
        reader.get_buffer()[: len(data)] = data
        reader.bytes_received(len(data))
        assert reader.awaited_bytes == awaited
