"""Znodes that do not belong in their folder."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from kafkapy.common.topic_partition import quoted

_log = logging.getLogger("kafka.zk.KafkaZkClient")


class StrayChildren:
    """Leaves out the children of one folder that have an invalid name, and logs each of them once.
    `kind` is the kind of the valid children, for the log.
    """

    def __init__(self, folder: str, kind: str, is_valid: Callable[[str], bool]) -> None:
        self._folder = folder
        self._kind = kind
        self._is_valid = is_valid
        self._logged: set[str] = set()

    def valid_names(self, names: Iterable[str]) -> list[str]:
        """The valid names, in their order."""
        found = []
        for name in names:
            if self._is_valid(name):
                found.append(name)
            elif name not in self._logged:
                self._logged.add(name)
                _log.warning(
                    "%s has the child %s, which is no %s", self._folder, quoted(name), self._kind
                )
        return found
