"""Compression in the framing of Kafka's Java client, and decompression with a limit.

| codec  | written                                              | also read                  |
|--------|------------------------------------------------------|----------------------------|
| gzip   | one gzip stream                                      | concatenated streams       |
| snappy | snappy-java stream, blocks of 32 KB                  | one raw block (librdkafka) |
| lz4    | LZ4 frame, independent blocks of 64 KB, no checksums | any LZ4 frame              |
| zstd   | one zstd frame                                       | concatenated frames        |

Java refuses linked lz4 blocks, which are the default of the lz4 library.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Final

import cramjam

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.record.codec import LEVEL_DEFAULT, Codec

_GZIP_WINDOW: Final = 31  # of 32 KB, with gzip's header; zlib's -1 is its own default level


def compress(codec: Codec, data: bytes | bytearray | memoryview, level: int | None) -> bytes:
    """Compress `data` in the framing of a codec that is not NONE."""
    if codec is Codec.SNAPPY:
        return _compress_snappy(data)
    level = LEVEL_DEFAULT[codec] if level is None else level
    if codec is Codec.GZIP:
        return zlib.compress(data, level, _GZIP_WINDOW)
    if codec is Codec.LZ4:
        return _compress_lz4(data, level)
    return bytes(cramjam.zstd.compress(data, level))


def decompress(codec: Codec, data: bytes | bytearray | memoryview, limit: int) -> bytes:
    """Decompress `data`, of a codec that is not NONE, to at most `limit` bytes.

    Raises:
        ApiError: CORRUPT_MESSAGE.
    """
    return bytes(decompress_view(codec, data, limit))


def decompress_view(
    codec: Codec, data: bytes | bytearray | memoryview, limit: int
) -> bytes | memoryview:
    """As `decompress`, without a copy, for large data. The pages are freed with the view.

    Raises:
        ApiError: CORRUPT_MESSAGE.
    """
    with _convert_errors(codec, data, limit):
        if codec is Codec.SNAPPY:
            return _decompress_snappy(data, limit)
        return _decompress_frame(_FRAMES[codec], data, limit)


def decompress_into(codec: Codec, data: bytes | bytearray | memoryview, out: memoryview) -> int:
    """Decompress to the start of `out`. Returns the number of bytes written.

    Raises:
        ApiError: CORRUPT_MESSAGE, also if the result does not fit.
    """
    with _convert_errors(codec, data, len(out)):
        if codec is not Codec.SNAPPY:
            return int(_FRAMES[codec].decompress_into(data, out))
        used = 0
        for block in _snappy_blocks(memoryview(data)):
            used += cramjam.snappy.decompress_raw_into(block, out[used:])
        return used


@contextmanager
def _convert_errors(
    codec: Codec, data: bytes | bytearray | memoryview, limit: int
) -> Iterator[None]:
    try:
        yield
    except cramjam.DecompressionError as error:
        raise ApiError(
            ErrorCode.CORRUPT_MESSAGE,
            f"{len(data)} bytes of {codec.label} do not decompress within {limit} bytes: {error}",
        ) from None


_FRAMES: Final[dict[Codec, ModuleType]] = {
    Codec.GZIP: cramjam.gzip,
    Codec.LZ4: cramjam.lz4,
    Codec.ZSTD: cramjam.zstd,
}
_RATIO: Final = 8
_SMALL_BUFFER_BYTES_MAX: Final = 120 * 1024  # above this, malloc would map fresh pages each time


def _decompress_frame(
    module: ModuleType, data: bytes | bytearray | memoryview, limit: int
) -> bytes | memoryview:
    """Decompress into a buffer that cannot grow: of a likely size first, then of the limit."""
    likely = len(data) * _RATIO
    if likely <= min(_SMALL_BUFFER_BYTES_MAX, limit):
        out = bytearray(likely)
        try:
            written = module.decompress_into(data, out)
        except cramjam.DecompressionError:
            pass  # too small, or damaged: the full buffer decides
        else:
            return bytes(memoryview(out)[:written])
    pages = anonymous_map(max(limit, 1))
    written = module.decompress_into(data, pages)
    return memoryview(pages)[:written]


def anonymous_map(size: int) -> mmap.mmap:
    """An anonymous map of `size` bytes. Only pages that are written use memory."""
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)


_LZ4_HEADER: Final = bytes.fromhex("04224d18 60 40 82")  # v1, independent blocks; 64 KB; checksum
_LZ4_HEADER_CRAMJAM: Final = bytes.fromhex("04224d18 70 40 ad")  # the same, each block checksummed
_LZ4_RAW_BIT: Final = 0x80000000


_LZ4_BLOCK: Final = 65536
_LZ4_END: Final = bytes(4)


def _compress_lz4(data: bytes | bytearray | memoryview, level: int) -> bytes:
    """Compress to an LZ4 frame. The default level, 9, means Kafka's fast compressor
    (`Lz4BlockOutputStream`), not the high one. The library has the fast compressor only for single
    blocks, and levels only for frames."""
    if level != LEVEL_DEFAULT[Codec.LZ4]:
        return _compress_lz4_high(data, level)
    view = memoryview(data)
    parts: list[bytes | memoryview] = [_LZ4_HEADER]
    for start in range(0, len(view), _LZ4_BLOCK):
        raw = view[start : start + _LZ4_BLOCK]
        block = bytes(cramjam.lz4.compress_block(raw, store_size=False))
        if len(block) < len(raw):
            parts += (len(block).to_bytes(4, "little"), block)
        else:
            parts += ((len(raw) | _LZ4_RAW_BIT).to_bytes(4, "little"), raw)
    return b"".join((*parts, _LZ4_END))


def _compress_lz4_high(data: bytes | bytearray | memoryview, level: int) -> bytes:
    """The library's frame without the four bytes of checksum after each block."""
    compressor = cramjam.lz4.Compressor(level, content_checksum=False, block_linked=False)
    compressor.compress(bytes(data))
    frame = bytes(compressor.finish())
    position = len(_LZ4_HEADER)
    assert frame[:position] == _LZ4_HEADER_CRAMJAM, frame[:position]
    parts = [_LZ4_HEADER]
    while size := int.from_bytes(frame[position : position + 4], "little"):
        end = position + 4 + (size & ~_LZ4_RAW_BIT)
        parts.append(frame[position:end])
        position = end + 4
    parts.append(frame[position:])
    return b"".join(parts)


_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK: Final = 32768
_INT32: Final = struct.Struct(">i")


def _compress_snappy(data: bytes | bytearray | memoryview) -> bytes:
    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK]))
        parts += (_INT32.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: bytes | bytearray | memoryview, limit: int) -> bytes:
    parts: list[bytes] = []
    for block in _snappy_blocks(memoryview(data)):
        parts.append(_snappy_block(block, limit))
        limit -= len(parts[-1])
    return b"".join(parts)


def _snappy_blocks(view: memoryview) -> Iterator[memoryview]:
    """The raw blocks of a snappy-java stream. Other data is one raw block."""
    if bytes(view[:8]) != _XERIAL_MAGIC:
        yield view
        return
    position = len(_XERIAL_HEADER)
    if len(view) < position:
        raise cramjam.DecompressionError("cut off in the stream header")
    while position < len(view):
        if len(view) - position < 4:
            raise cramjam.DecompressionError("cut off in a block length")
        size: int = _INT32.unpack_from(view, position)[0]
        position += 4
        if not 0 < size <= len(view) - position:
            raise cramjam.DecompressionError(f"block length {size} is out of bounds")
        yield view[position : position + size]
        position += size


def _snappy_block(block: memoryview, limit: int) -> bytes:
    size = cramjam.snappy.decompress_raw_len(block)
    if size > limit:
        raise cramjam.DecompressionError(f"block declares {size} bytes")
    return bytes(cramjam.snappy.decompress_raw(block))
