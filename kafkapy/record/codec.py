"""The codecs of record batches: their ids, names, levels and limit."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

DECOMPRESSED_BYTES_MAX: Final = 128 * 1024 * 1024
"""The size limit of a decompressed batch: more than the largest request (100 MiB), far less than a
decompression bomb."""


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
    """The codec of a topic's `compression.type`: None for `producer`, NONE for `uncompressed`.

    Raises:
        ValueError: not a value of `compression.type`.
    """
    if compression_type == "producer":
        return None
    return codec_by_name("none" if compression_type == "uncompressed" else compression_type)


def codec_by_name(name: str) -> Codec:
    """The codec of a client's `compression.type` or `--compression-codec`, in any case.

    Raises:
        ValueError: no codec has that name.
    """
    try:
        return Codec[name.upper()]
    except KeyError:
        raise ValueError(f"Unknown compression name: {name}") from None
