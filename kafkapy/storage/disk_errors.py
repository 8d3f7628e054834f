"""Classes of `OSError`: a failed log directory, or a process short of descriptors or memory."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure

DESCRIPTOR_ERRNOS: Final = frozenset({errno.EMFILE, errno.ENFILE})
"""Errors that are not the disk's: this process, or this machine, has too many open files."""
SHORTAGE_ERRNOS: Final = DESCRIPTOR_ERRNOS | {errno.ENOMEM}


class StorageShortage(ApiError):
    """An operation found no free descriptor or memory. The disk is sound, and nothing changed.

    Clients get KAFKA_STORAGE_ERROR and retry.
    """

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, message)


def disk_error(
    log_dir: str, error: OSError, doing: str = "", changed: bool = False
) -> LogDirFailure | StorageShortage:
    """The exception to raise for `error`, which occurred in `log_dir` while `doing` something.

    `changed`: the operation was half done. A log whose files differ from its state in memory must
    not be used again, whatever the reason.
    """
    where = f": {error.filename}" if error.filename else ""
    message = (
        f"I/O error{doing and ' ' + doing} in log directory {log_dir}{where}: "
        f"[Errno {error.errno}] {error.strerror or error}"
    )
    if error.errno in SHORTAGE_ERRNOS and not changed:
        return StorageShortage(message)
    return LogDirFailure(log_dir, message)


@contextmanager
def convert_disk_errors(log_dir: str) -> Iterator[None]:
    """Convert an OSError raised in this context (`disk_error`)."""
    try:
        yield
    except OSError as error:
        raise disk_error(log_dir, error) from error
