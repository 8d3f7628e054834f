"""Writes files that only their owner may read, because they may contain passwords."""

from __future__ import annotations

from pathlib import Path

from kafkapy.common.errors import ConfigError
from kafkapy.storage.filesystem import OsFileSystem, write_atomically


def write_privately(path: Path, data: bytes) -> None:
    """Write a private file atomically. Raises OSError."""
    write_atomically(OsFileSystem(), str(path), data, durable=False, private=True)


def write_config_privately(path: Path, text: str) -> None:
    """Write a private file in UTF-8, and make its directory.

    Raises:
        ConfigError: the directory cannot be made, or the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_privately(path, text.encode())
    except OSError as error:
        raise ConfigError(f"Cannot write {path}: {error.strerror}") from error
