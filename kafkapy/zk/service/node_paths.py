"""Paths that znodes may have."""

from __future__ import annotations

import re
from typing import Final

from kafkapy.zk.service.refusals import Refused
from kafkapy.zk.wire.codes import ErrorCode

CONFIG: Final = "/zookeeper/config"
QUOTA: Final = "/zookeeper/quota"
SYSTEM: Final = ("/zookeeper", QUOTA, CONFIG)
"""The nodes that always exist and cannot be deleted."""

# As `PathUtils.validatePath`: control characters, surrogates and private use, specials, and
# characters that Java encodes as two surrogates.
_FORBIDDEN: Final = re.compile("[\0-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]")
_INVALID_NAMES: Final = frozenset(("", ".", ".."))


def check_path(path: str) -> None:
    """Check that a node may have this path.

    Raises:
        Refused: BADARGUMENTS.
    """
    if path == "/":
        return
    if (
        not path.startswith("/")
        or _FORBIDDEN.search(path) is not None
        or not _INVALID_NAMES.isdisjoint(path[1:].split("/"))
    ):
        raise Refused(ErrorCode.BADARGUMENTS)


def parent_to_change(path: str) -> str:
    """The parent of a node to create or to delete. The path may still be invalid.

    Raises:
        Refused: BADARGUMENTS: the path has no parent, or contains a null character.
    """
    parent, slash, _ = path.rpartition("/")
    if not slash or "\0" in path:
        raise Refused(ErrorCode.BADARGUMENTS)
    return parent or "/"
