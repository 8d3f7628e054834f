"""The codecs of record batches: names, levels, and the way to `codec_frames`, which does the work.

That module is imported with the first batch that is compressed: its library takes a millisecond.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

DECOMPRESSED_BYTES_MAX: Final = 128 * 1024 * 1024
"""What a batch may unfold to: more than the largest request (100 MiB), far less than a bomb."""


class Codec(IntEnum):
    """Compression codecs by their ids in a batch's attributes (`CompressionType`)."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @property
    def label(self) -> str:
        """The codec as Kafka 3.x prints it: `none`, `gzip`, ..."""
        return self.name.lower()


LEVEL_DEFAULT: Final = {Codec.GZIP: -1, Codec.LZ4: 9, Codec.ZSTD: 3}
"""Kafka's `compression.<codec>.level` defaults; -1 is gzip's own default, 6."""


def codec_of_topic(compression_type: str) -> Codec | None:
    """The codec a topic's `compression.type` asks for; None for `producer`. `uncompressed` is NONE.

    Raises:
        ValueError: not a value of `compression.type`.
    """
    if compression_type == "producer":
        return None
    return codec_by_name("none" if compression_type == "uncompressed" else compression_type)


def codec_by_name(name: str) -> Codec:
    """The codec a client's `compression.type` or `--compression-codec` names, in any case.

    Raises:
        ValueError: no codec has that name.
    """
    try:
        return Codec[name.upper()]
    except KeyError:
        raise ValueError(f"Unknown compression name: {name}") from None


def compress(codec: Codec, data: bytes | bytearray | memoryview, level: int | None = None) -> bytes:
    """`data` in the codec's framing, at a `level` the topic config allows (snappy has none)."""
    if codec is Codec.NONE:
        return bytes(data)
    from kafkapy.record import codec_frames

    return codec_frames.compress(codec, data, level)


def decompress(
    codec: Codec, data: bytes | bytearray | memoryview, max_bytes: int | None = None
) -> bytes:
    """The bytes that `data` holds compressed, at most `max_bytes` (default DECOMPRESSED_BYTES_MAX).

    Raises:
        ApiError: CORRUPT_MESSAGE when `data` is not the codec's, is cut off, or unfolds to more.
    """
    if codec is Codec.NONE:
        return bytes(data)
    from kafkapy.record import codec_frames

    return codec_frames.decompress(
        codec, data, DECOMPRESSED_BYTES_MAX if max_bytes is None else max_bytes
    )


def decompress_view(
    codec: Codec, data: bytes | bytearray | memoryview, max_bytes: int
) -> memoryview:
    """`decompress` without a copy of what may be large.

    Raises:
        ApiError: CORRUPT_MESSAGE, as `decompress`.
    """
    if codec is Codec.NONE:
        return memoryview(data)
    from kafkapy.record import codec_frames

    return codec_frames.decompress_view(codec, data, max_bytes)


def decompress_into(codec: Codec, data: bytes | bytearray | memoryview, room: memoryview) -> int:
    """Decompress to the start of `room`, for callers who use it again and again; the bytes written.

    Raises:
        ApiError: CORRUPT_MESSAGE when `data` is not the codec's, is cut off, or does not fit.
    """
    from kafkapy.record import codec_frames

    return codec_frames.decompress_into(codec, data, room)
