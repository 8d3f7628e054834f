"""Fills free memory with page cache, as on a server that has run for a day.

A virtual machine may give freed memory back to its host. A page of that memory costs 8 us when it
is used again: 2 s for each GB of a written log or of a filled heap, in any system. Pages that the
kernel takes from its page cache do not have this cost.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, Final

_MIB: Final = 2**20
_LEFT_FREE_BYTES: Final = 384 * _MIB
_STEP_BYTES: Final = 64 * _MIB
_FILE_BYTES: Final = 2**43
_WITHOUT_PROGRESS: Final = 16


class FullPageCache:
    """Fills free memory with the pages of `file`, which is empty and becomes one hole: nothing is
    read from a disk."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        file.truncate(_FILE_BYTES)
        self._position = 0
        self._buffer = bytearray(_MIB)

    def fill(self) -> None:
        """Read until little memory is free, or until reads no longer reduce the free memory."""
        least, in_vain = free_bytes(), 0
        while least > _LEFT_FREE_BYTES and in_vain < _WITHOUT_PROGRESS:
            for _ in range(_STEP_BYTES // _MIB):
                os.preadv(self._file.fileno(), [self._buffer], self._position)
                self._position += _MIB
            now = free_bytes()
            in_vain = 0 if now < least else in_vain + 1
            least = min(least, now)


def free_bytes() -> int:
    """Unused memory (MemFree); 0 if it is not known."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "MemFree":
            return int(value.split()[0]) * 1024
    return 0
