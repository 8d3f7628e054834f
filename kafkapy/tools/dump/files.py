"""Shared parts of the readers of log directory files: their failures and their names."""

from __future__ import annotations

import os
from typing import NamedTuple

from kafkapy.common.errors import KafkapyError


class BrokenFile(KafkapyError):
    """A file cannot be read on; the message names it and says why."""


class CorruptSnapshot(KafkapyError):
    """A `.snapshot` that Kafka would not load, and would do without; in Kafka's words."""


class IndexChecks(NamedTuple):
    """`--index-sanity-check`, `--verify-index-only` and `--max-message-size`."""

    sanity_only: bool = False
    verify_only: bool = False
    max_message_bytes: int = 5 * 1024 * 1024


def base_offset_of(path: str) -> int:
    """The number before the first dot of a file's name.

    Raises:
        BrokenFile: there is none.
    """
    name = os.path.basename(path).split(".")[0]
    if not (name.isascii() and name.isdigit()):
        raise BrokenFile(f"{path}: its name does not begin with a base offset")
    return int(name)
