"""Writes files that only their owner may read, because they may contain passwords."""

from __future__ import annotations

from pathlib import Path

from kafkapy.storage.filesystem import OsFileSystem, write_atomically


def write_privately(path: Path, data: bytes) -> None:
    """Write a private file atomically. Raises OSError."""
    write_atomically(OsFileSystem(), str(path), data, durable=False, private=True)
