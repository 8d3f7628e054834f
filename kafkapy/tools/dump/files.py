"""Errors and file names, shared by the readers of log directory files."""

from __future__ import annotations

import os
from typing import NamedTuple

from kafkapy.common.errors import KafkapyError


class BrokenFile(KafkapyError):
    """A file cannot be read further. The message names it and the reason."""


class CorruptSnapshot(KafkapyError):
    """A `.snapshot` that Kafka would ignore as corrupt. The message is Kafka's."""


class IndexChecks(NamedTuple):
    """`--index-sanity-check`, `--verify-index-only` and `--max-message-size`."""

    sanity_only: bool = False
    verify_only: bool = False
    max_message_bytes: int = 5 * 1024 * 1024


def base_offset_of(path: str) -> int:
    """The number before the first dot of a file's name.

    Raises:
        BrokenFile: the name does not begin with a number.
    """
    name = os.path.basename(path).split(".")[0]
    if not (name.isascii() and name.isdigit()):
        raise BrokenFile(f"{path}: its name does not begin with a base offset")
    return int(name)
