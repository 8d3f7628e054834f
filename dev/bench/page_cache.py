"""Memory as a server's is that has run for a day: none free, all of it page cache.

A virtual machine may give freed memory back to its host, which takes 8 us for each page that is
wanted again: 2 s for each GB of a log that is written or a heap that is filled, whoever does it.
Pages that the kernel takes from its cache have no such price.
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
    """Fills free memory with the pages of `file`, an empty one that becomes one hole: no disk has
    a part in it."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        file.truncate(_FILE_BYTES)
        self._position = 0
        self._buffer = bytearray(_MIB)

    def fill(self) -> None:
        """Read on until little is free, or reading does not make it less."""
        least, in_vain = free_bytes(), 0
        while least > _LEFT_FREE_BYTES and in_vain < _WITHOUT_PROGRESS:
            for _ in range(_STEP_BYTES // _MIB):
                os.preadv(self._file.fileno(), [self._buffer], self._position)
                self._position += _MIB
            now = free_bytes()
            in_vain = 0 if now < least else in_vain + 1
            least = min(least, now)


def free_bytes() -> int:
    """Memory that nothing is in."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "MemFree":
            return int(value.split()[0]) * 1024
    return 0
