"""The codecs: Kafka's framings byte for byte, tolerant reading, and no way to exhaust memory."""

from __future__ import annotations

import gzip
import hashlib
import struct
import subprocess
import sys

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.codec import Codec
from kafkapy.record.compression import compress, decompress, decompress_into

CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
NOISE = b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(3200))
TEXT = b"".join(b"%d: line %d of a log\n" % (i, NOISE[i]) for i in range(9000))  # 3 lz4 blocks


@pytest.mark.parametrize("codec", list(Codec))
@given(st.binary(max_size=2000), st.integers(1, 60))
def test_round_trip(codec: Codec, data: bytes, repeat: int) -> None:
    assert decompress(codec, compress(codec, data * repeat)) == data * repeat


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("data", [b"", b"x", TEXT, NOISE, bytes(1 << 20)])
def test_round_trip_of_sizes_and_kinds(codec: Codec, data: bytes) -> None:
    for given_as in (data, bytearray(data), memoryview(data)):
        compressed = compress(codec, given_as)
        assert decompress(codec, memoryview(compressed)) == data
    assert len(data) < 200_000 or codec is Codec.NONE or len(compressed) < len(data) / 3


@pytest.mark.parametrize("codec", CODECS)
def test_into_a_room_that_is_used_again(codec: Codec) -> None:
    room = memoryview(bytearray(len(TEXT) + 10))
    for data in (TEXT, NOISE, b""):
        written = decompress_into(codec, compress(codec, data), room[7:])
        assert room[7 : 7 + written] == data


@pytest.mark.parametrize("codec", CODECS)
def test_what_does_not_fit_the_room_is_corrupt(codec: Codec) -> None:
    room = bytearray(len(TEXT) + 5)
    with pytest.raises(ApiError) as caught:
        decompress_into(codec, compress(codec, TEXT), memoryview(room)[: len(TEXT) - 1])
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    assert bytes(room[len(TEXT) - 1 :]) == bytes(6)  # nothing beyond it was touched


@pytest.mark.parametrize(
    ("codec", "levels"),
    [(Codec.GZIP, [1, -1, 9]), (Codec.LZ4, [1, 2, 3, 9, 17]), (Codec.ZSTD, [-131072, -1, 1, 22])],
)
def test_every_level_a_topic_may_have(codec: Codec, levels: list[int]) -> None:
    sizes = [len(compress(codec, TEXT, level)) for level in levels]
    assert all(decompress(codec, compress(codec, TEXT, level)) == TEXT for level in levels)
    assert sizes[-1] < sizes[0]


def test_default_levels_are_kafkas() -> None:
    for codec, level in ((Codec.GZIP, 6), (Codec.LZ4, 9), (Codec.ZSTD, 3)):
        assert compress(codec, TEXT) == compress(codec, TEXT, level)


def test_lz4s_default_is_the_fast_compressor_as_in_kafka() -> None:
    """Level 9 of the high compressor costs thirty times as much."""
    fast, high = compress(Codec.LZ4, TEXT, 1), compress(Codec.LZ4, TEXT, 8)
    assert compress(Codec.LZ4, TEXT, 9) == fast
    assert len(high) < len(fast)


def test_lz4_is_the_frame_that_java_accepts() -> None:
    frame = compress(Codec.LZ4, TEXT + NOISE[:65536])
    # magic; version 1, independent blocks, no checksums, no content size; 64 KB; header checksum
    assert frame[:7].hex() == "04224d18604082"
    position, uncompressed, kinds = 7, 0, set()
    while size := int.from_bytes(frame[position : position + 4], "little"):
        length = size & 0x7FFFFFFF
        block = frame[position + 4 : position + 4 + length]
        if size >> 31:
            uncompressed += length
        else:  # each block stands alone
            uncompressed += len(bytes(cramjam.lz4.decompress_block(block, output_len=65536)))
        kinds.add(size >> 31)
        position += 4 + length
    assert kinds == {0, 1}
    assert uncompressed == len(TEXT) + 65536
    assert position + 4 == len(frame)
    assert bytes(cramjam.lz4.decompress(frame)) == TEXT + NOISE[:65536]


def test_lz4_with_linked_blocks_and_checksums_is_read() -> None:
    frame = bytes(cramjam.lz4.compress(TEXT))
    assert frame[4] & 0x20 == 0  # what cramjam writes of itself: aiokafka sends this
    assert decompress(Codec.LZ4, frame) == TEXT


def test_snappy_is_the_stream_of_snappy_java() -> None:
    stream = compress(Codec.SNAPPY, TEXT)
    assert stream[:16].hex() == "82534e41505059000000000100000001"
    position, blocks = 16, []
    while position < len(stream):
        (length,) = struct.unpack_from(">i", stream, position)
        block = stream[position + 4 : position + 4 + length]
        blocks.append(bytes(cramjam.snappy.decompress_raw(block)))
        position += 4 + length
    assert b"".join(blocks) == TEXT
    assert {len(block) for block in blocks[:-1]} == {32768}


def test_a_raw_snappy_block_is_read() -> None:
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT


def test_concatenated_gzip_streams_are_read() -> None:
    assert decompress(Codec.GZIP, gzip.compress(b"one ") + gzip.compress(b"two")) == b"one two"


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("bad", ["cut", "noise", "empty"])
def test_what_is_not_the_codecs_is_corrupt(codec: Codec, bad: str) -> None:
    whole = compress(codec, TEXT)
    data = {"cut": whole[:-9], "noise": b"\xff" + NOISE[:50], "empty": b""}[bad]
    with pytest.raises(ApiError, match=codec.label) as caught:
        decompress(codec, data)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("limit", [len(TEXT) - 1, 1000, 1, 0])
def test_nothing_unfolds_past_the_limit(codec: Codec, limit: int) -> None:
    compressed = compress(codec, TEXT)
    assert decompress(codec, compressed, len(TEXT)) == TEXT
    with pytest.raises(ApiError, match=f"within {limit} bytes"):
        decompress(codec, compressed, limit)


def test_snappy_blocks_share_one_limit() -> None:
    with pytest.raises(ApiError):
        decompress(Codec.SNAPPY, compress(Codec.SNAPPY, TEXT), 3 * 32768)


@pytest.mark.parametrize(
    "stream",
    [
        b"\x82SNAPPY\x00" + bytes(7),
        b"\x82SNAPPY\x00" + bytes(8) + b"\x00\x00",
        b"\x82SNAPPY\x00" + bytes(8) + struct.pack(">i", -1),
        b"\x82SNAPPY\x00" + bytes(8) + struct.pack(">i", 0),
        b"\x82SNAPPY\x00" + bytes(8) + struct.pack(">i", 2**31 - 1) + b"x",
        b"\xff\xff\xff\xff\x07 a block that declares 2 GiB",
    ],
)
def test_lying_snappy_lengths(stream: bytes) -> None:
    with pytest.raises(ApiError) as caught:
        decompress(Codec.SNAPPY, stream)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


BOMB = """
from pathlib import Path
from kafkapy.common.errors import ApiError
from kafkapy.record.codec import Codec
from kafkapy.record.compression import compress, decompress

def peak_kib():  # of this process alone: ru_maxrss starts at its parent's
    line = Path("/proc/self/status").read_text().split("VmHWM:")[1]
    return int(line.split()[0])

codec = Codec({codec})
bomb = compress(codec, bytes(1 << 20)) * 400  # frames may follow each other
before = peak_kib()
try:
    decompress(codec, bomb, {limit})
except ApiError:
    print("refused", end=" ")
print(peak_kib() - before)
"""


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_a_bomb_costs_no_more_memory_than_the_limit(codec: Codec) -> None:
    def run(limit: int) -> list[str]:  # in its own process: a peak never goes down
        script = BOMB.format(codec=int(codec), limit=limit)
        command = [sys.executable, "-c", script]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    refused, grown_kib = run(4 << 20)
    assert refused == "refused"
    assert int(grown_kib) < 16 << 10
    (grown_kib,) = run(400 << 20)
    assert int(grown_kib) > 400 << 10
