"""Record batches compressed and decompressed: the way to `codec_frames`, which does the work.

That module is imported with the first batch that is compressed: its library takes a millisecond.
"""

from __future__ import annotations

from kafkapy.record.codec import DECOMPRESSED_BYTES_MAX, Codec


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
) -> bytes | memoryview:
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
