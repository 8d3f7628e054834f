"""The cleaner's map from a key to the last offset that has it, in a fixed amount of memory.

An open-addressed table of 24-byte slots: the MD5 of the key and the offset (Kafka's
`SkimpyOffsetMap`).
"""

from __future__ import annotations

from hashlib import md5
from struct import Struct
from typing import Final

SLOT_BYTES: Final = 24
LOAD_FACTOR: Final = 0.9
_DIGEST: Final = 16
_EMPTY: Final = bytes(_DIGEST)
_OFFSET: Final = Struct(">q")


class OffsetMap:
    """`capacity`: how many keys fit. `latest_offset`: the last one indexed, -1 if none is."""

    __slots__ = ("_memory", "_slots", "capacity", "latest_offset", "size")

    def __init__(self, memory_bytes: int, load_factor: float = LOAD_FACTOR) -> None:
        self._slots = max(memory_bytes // SLOT_BYTES, 2)
        # At least one slot stays empty: a search for an unknown key ends there.
        self.capacity = min(int(self._slots * load_factor), self._slots - 1)
        self._memory = bytearray(self._slots * SLOT_BYTES)
        self.size = 0
        self.latest_offset = -1

    @property
    def is_full(self) -> bool:
        return self.size >= self.capacity

    def put(self, key: bytes, offset: int) -> None:
        """`offset` is the last one of `key` so far; a new key needs room."""
        position, digest = self._find(key)
        if self._memory[position : position + _DIGEST] == _EMPTY:
            assert not self.is_full, "the offset map is full"
            self._memory[position : position + _DIGEST] = digest
            self.size += 1
        _OFFSET.pack_into(self._memory, position + _DIGEST, offset)

    def get(self, key: bytes) -> int:
        """The last offset of `key`, -1 if it has none."""
        position, digest = self._find(key)
        if self._memory[position : position + _DIGEST] != digest:
            return -1
        offset: int = _OFFSET.unpack_from(self._memory, position + _DIGEST)[0]
        return offset

    def _find(self, key: bytes) -> tuple[int, bytes]:
        """(position, digest) of the slot that has `key`, or of the empty one where it belongs."""
        digest = md5(key, usedforsecurity=False).digest()
        memory = self._memory
        slot = int.from_bytes(digest[:8], "big") % self._slots
        while True:
            position = slot * SLOT_BYTES
            found = memory[position : position + _DIGEST]
            if found in (digest, _EMPTY):
                return position, digest
            slot = (slot + 1) % self._slots
