"""Files of the tools that may hold passwords: only their owner may read them."""

from __future__ import annotations

from pathlib import Path

from kafkapy.storage.filesystem import OsFileSystem, write_atomically


def write_privately(path: Path, data: bytes) -> None:
    """Write a file, whole or not at all. Raises OSError."""
    write_atomically(OsFileSystem(), str(path), data, durable=False, private=True)
