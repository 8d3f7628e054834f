"""Compresses and decompresses record batches, through `codec_frames`.

That module is imported at the first compressed batch: its library takes a millisecond to load.
"""

from __future__ import annotations

from kafkapy.record.codec import DECOMPRESSED_BYTES_MAX, Codec


def compress(codec: Codec, data: bytes | bytearray | memoryview, level: int | None = None) -> bytes:
    """Compress `data` in the codec's framing at a `level` of the topic config (snappy has none)."""
    if codec is Codec.NONE:
        return bytes(data)
    from kafkapy.record import codec_frames

    return codec_frames.compress(codec, data, level)


def decompress(
    codec: Codec, data: bytes | bytearray | memoryview, max_bytes: int | None = None
) -> bytes:
    """Decompress `data` to at most `max_bytes` (default DECOMPRESSED_BYTES_MAX).

    Raises:
        ApiError: CORRUPT_MESSAGE if `data` is of another format, is cut off, or has more bytes.
    """
    if codec is Codec.NONE:
        return bytes(data)
    from kafkapy.record import codec_frames

    return codec_frames.decompress(
        codec, data, DECOMPRESSED_BYTES_MAX if max_bytes is None else max_bytes
    )


def decompress_view(
    codec: Codec, data: bytes | bytearray | memoryview, max_bytes: int
) -> bytes | memoryview:
    """As `decompress`, without a copy of large data.

    Raises:
        ApiError: CORRUPT_MESSAGE, as `decompress`.
    """
    if codec is Codec.NONE:
        return memoryview(data)
    from kafkapy.record import codec_frames

    return codec_frames.decompress_view(codec, data, max_bytes)


def decompress_into(codec: Codec, data: bytes | bytearray | memoryview, out: memoryview) -> int:
    """Decompress to the start of `out`, which callers reuse. Returns the number of bytes written.

    Raises:
        ApiError: CORRUPT_MESSAGE if `data` is of another format, is cut off, or does not fit.
    """
    from kafkapy.record import codec_frames

    return codec_frames.decompress_into(codec, data, out)
