"""Flipped bits: the positions at which they must be detected.

The CRC of a batch covers the bytes after it. Base offset and leader epoch are before it, so no
reader can detect errors in them, as in Kafka.
"""

from __future__ import annotations

from random import Random
from typing import Final

from kafkapy.record.batch_header import HEADER_SIZE, LOG_OVERHEAD
from kafkapy.record.checksum import crc32c

_LENGTH_AT: Final = 8
_MAGIC_AT: Final = 16
_CRC_AT: Final = 17
_COVERED_AT: Final = 21
_PRODUCER_FIELDS: Final = (*range(21, 27), *range(43, 57))
"""Attributes and last offset delta; producer id, epoch and base sequence."""
_MAGIC: Final = b"\2"
_ENTRY_SIZE: Final = 8  # of an offset index: a relative offset and a position
_OFFSET_SIZE: Final = 4


def batches_in(data: bytes) -> list[tuple[int, int]]:
    """The start and end of each whole batch of format v2 with a correct CRC, at any position."""
    found = []
    magic = data.find(_MAGIC, _MAGIC_AT)
    while magic >= 0:
        start = magic - _MAGIC_AT
        length = int.from_bytes(data[start + _LENGTH_AT : start + LOG_OVERHEAD], "big")
        end = start + LOG_OVERHEAD + length
        if start + HEADER_SIZE <= end <= len(data):
            crc = int.from_bytes(data[start + _CRC_AT : start + _COVERED_AT], "big")
            if crc32c(data[start + _COVERED_AT : end]) == crc:
                found.append((start, end))
                magic = end + _MAGIC_AT - 1
        magic = data.find(_MAGIC, magic + 1)
    return found


def place_in_batch(random: Random, data: bytes) -> int | None:
    """A random position of a byte that a CRC or the format covers; None without a batch."""
    batches = batches_in(data)
    if not batches:
        return None
    return random.choice(_covered_positions(*random.choice(batches)))


def place_in_header(random: Random, data: bytes, offsets: range) -> int | None:
    """A random position in the producer fields of a batch that begins in `offsets`, or None. At a
    start or a truncation a broker reads only the headers of most batches."""
    starts = [start for start, _ in batches_in(data)]
    starts = [at for at in starts if int.from_bytes(data[at : at + _LENGTH_AT], "big") in offsets]
    if not starts:
        return None
    return random.choice(starts) + random.choice(_PRODUCER_FIELDS)


def lower_offsets(index: bytes) -> list[tuple[int, int]]:
    """The (byte, bit) places of an offset index at which a flip lowers the offset of an entry, so
    that a lookup skips the batches in between."""
    return [
        (at, bit)
        for at in range(len(index))
        for bit in range(8)
        if at % _ENTRY_SIZE < _OFFSET_SIZE and index[at] >> bit & 1
    ]


def _covered_positions(start: int, end: int) -> list[int]:
    return [*range(start + _LENGTH_AT, start + LOG_OVERHEAD), *range(start + _MAGIC_AT, end)]


def with_flipped_bit(random: Random, data: bytes) -> bytes | None:
    """`data` with one bit of a batch flipped; None without a batch."""
    position = place_in_batch(random, data)
    if position is None:
        return None
    flipped = bytearray(data)
    flipped[position] ^= 1 << random.randrange(8)
    return bytes(flipped)
