"""The cleaner's map from a key to the last offset that has it, within a bound of memory.

Kafka's `SkimpyOffsetMap` packs MD5 sums into slots of 24 bytes. In Python a dict that takes a
batch's keys at once is many times faster; it holds fewer keys in the same memory, so a log with
many keys is cleaned in more rounds (docs/decisions/0019-compaction.md).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from hashlib import md5
from typing import Final

# The dict's table while it grows, a key, an offset, and its entry in `_sorted_offsets`.
ENTRY_BYTES: Final = 192
_LONG_KEY: Final = 48


class OffsetMap:
    """`capacity` is the number of keys that fit, `latest_offset` the last indexed offset or -1."""

    __slots__ = ("_batches", "_last_offsets", "_sorted_offsets", "capacity", "latest_offset")

    def __init__(self, memory_bytes: int) -> None:
        self.capacity = max(memory_bytes // ENTRY_BYTES, 1)
        self.latest_offset = -1
        self._last_offsets: dict[bytes | int | None, int] = {}
        self._batches = array("q")  # base offsets of the batches added whole, ascending
        self._sorted_offsets: array[int] | None = None

    def __len__(self) -> int:
        return len(self._last_offsets)

    def has_room(self, count: int) -> bool:
        """Whether `count` more keys fit, even if all are new. The first keys always fit."""
        return not self._last_offsets or len(self._last_offsets) + count <= self.capacity

    def put(self, keys: Sequence[bytes | None], offsets: Sequence[int]) -> None:
        """Add keys with their offsets, which exceed all earlier ones. None keys are ignored."""
        self._last_offsets.update(zip(_map_keys(keys), offsets, strict=True))
        self._last_offsets.pop(None, None)
        self._sorted_offsets = None

    def put_batch(
        self, base_offset: int, keys: Sequence[bytes | None], offsets: Sequence[int]
    ) -> None:
        """Add the keys of a whole batch, as `put`."""
        self.put(keys, offsets)
        self._batches.append(base_offset)

    def supersedes(self, keys: Sequence[bytes | None], offsets: Sequence[int]) -> list[bool]:
        """Whether each key, at its offset, has a later record or is None."""
        last = self._last_offsets.get
        return [
            key is None or last(_map_key(key), -1) > offset
            for key, offset in zip(keys, offsets, strict=True)
        ]

    def is_superseded(self, base_offset: int, last_offset: int) -> bool:
        """Whether a whole batch was added, and each of its keys has a later record or is None: then
        it need not be read again.
        """
        at = bisect_left(self._batches, base_offset)
        if at == len(self._batches) or self._batches[at] != base_offset:
            return False
        newest = self._sorted_offsets
        if newest is None:
            newest = self._sorted_offsets = array("q", sorted(self._last_offsets.values()))
        at = bisect_left(newest, base_offset)
        return at == len(newest) or newest[at] > last_offset


def _map_keys(keys: Sequence[bytes | None]) -> Iterable[bytes | int | None]:
    try:
        if max(map(len, keys), default=0) <= _LONG_KEY:  # type: ignore[arg-type]
            return keys
    except TypeError:  # None is among them
        pass
    return map(_map_key, keys)


def _map_key(key: bytes | None) -> bytes | int | None:
    """The key, or the MD5 sum of a long key as a number."""
    if key is None or len(key) <= _LONG_KEY:
        return key
    return int.from_bytes(md5(key, usedforsecurity=False).digest(), "big")
