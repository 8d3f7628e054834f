"""Writes files that may contain passwords, which only their owner may read."""

from __future__ import annotations

from pathlib import Path

from kafkapy.storage.filesystem import OsFileSystem, write_atomically


def write_privately(path: Path, data: bytes) -> None:
    """Write a file atomically. Raises OSError."""
    write_atomically(OsFileSystem(), str(path), data, durable=False, private=True)
