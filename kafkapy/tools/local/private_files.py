"""Keeps files from other users: files that only their owner may read, because they may contain
passwords, and directories that another user has prepared.
"""

from __future__ import annotations

import os
import stat
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


def check_owner(directory: Path, option: str) -> None:
    """Refuse a directory that another user has created where every user can, as in /tmp: its links
    and its properties would act with the rights of this user. A missing directory is accepted.

    Raises:
        ConfigError: it belongs to another user than root; `option` names another directory. Or it
            cannot be reached.
    """
    try:
        is_shared = directory.parent.stat().st_mode & stat.S_ISVTX
        if is_shared and directory.lstat().st_uid not in (0, os.geteuid()):
            raise ConfigError(
                f"{directory} belongs to another user: name another one with {option}"
            )
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigError(f"Cannot use {directory}: {error.strerror}") from error
