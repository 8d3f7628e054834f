"""Saves the throttles from before a reassignment in a small file beside the reassignment file.

After the moves Kafka's tool deletes every throttle. Here earlier throttles are saved, and
`--verify` restores them. The throttles that the reassignment sets are saved too. So a run that
continues an interrupted one does not treat them as earlier throttles.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Final

from kafkapy.admin.configs import Resource
from kafkapy.common.config_def import ResourceType
from kafkapy.common.java_numbers import is_natural
from kafkapy.storage.filesystem import OsFileSystem, write_atomically
from kafkapy.tools.json_input import JsonInputError, JsonNode, parse_json, read_text

SUFFIX: Final = ".throttles"
_VERSION: Final = 1
_TYPES: Final = {"topic": ResourceType.TOPIC, "broker": ResourceType.BROKER}

Throttles = Mapping[Resource, Mapping[str, str]]
"""Values of throttle configs, by resource and key."""

_Row = tuple[Resource, str, str]


class ThrottleRecord:
    """The file of one reassignment. It exists if the reassignment sets throttles, until they are
    removed, or if there were earlier throttles."""

    def __init__(self, reassignment_path: str) -> None:
        self.path = reassignment_path + SUFFIX

    def read(self) -> dict[Resource, dict[str, str]]:
        """The throttles to restore; empty without a file.

        Raises:
            JsonInputError: the file is malformed.
        """
        found: dict[Resource, dict[str, str]] = {}
        for resource, key, value in self._rows("previous"):
            found.setdefault(resource, {})[key] = value
        return found

    def throttles_to_restore(
        self, present: Throttles, live: Collection[int]
    ) -> dict[Resource, dict[str, str]]:
        """The throttles to restore, given the `present` ones of topics and of the live brokers. If
        an interrupted run of this reassignment set a present throttle, its value from before that
        run is restored, if any. Brokers that are down have the throttles of the file.

        Raises:
            JsonInputError: the file is malformed.
        """
        before, own_rows = self.read(), set(self._rows("set"))
        found = {r: configs for r, configs in before.items() if r.broker_id not in {None, *live}}
        for resource, key, value in _rows_of(present):
            is_own = (resource, key, value) in own_rows
            restored_value = before.get(resource, {}).get(key) if is_own else value
            if restored_value is not None:
                found.setdefault(resource, {})[key] = restored_value
        return found

    def write(self, previous: Throttles, sets: Throttles = MappingProxyType({})) -> None:
        """Save the throttles to restore, and add those that are about to be set.

        Raises:
            JsonInputError: the present file is malformed.
            OSError: the file cannot be written.
        """
        self._save(previous, dict.fromkeys([*self._rows("set"), *_rows_of(sets)]))

    def _save(self, previous: Throttles, own_rows: Iterable[_Row]) -> None:
        document = {
            "version": _VERSION,
            "previous": [_json(row) for row in _rows_of(previous)],
            "set": [_json(row) for row in own_rows],
        }
        data = f"{json.dumps(document)}\n".encode()
        # This file is the only copy of the earlier throttles. A full disk must not destroy it.
        write_atomically(OsFileSystem(), os.path.abspath(self.path), data)

    def settle(self, live: Collection[int]) -> None:
        """Forget the throttles that were set, after the earlier ones were restored on the live
        brokers. A broker that is down still has a throttle that was set; then nothing changes.

        The earlier throttles stay in the file, because a further `--verify` deletes all others.
        """
        own_resources = {resource for resource, _, _ in self._rows("set")}
        if not {r.broker_id for r in own_resources}.issubset({None, *live}):
            return
        previous = self.read()
        if not previous:
            self.remove()
            return
        with suppress(OSError):  # the present file restores the same throttles
            self._save(previous, ())

    def remove(self) -> None:
        """Remove the file, because nothing must be restored. It stays if this user may not remove
        it.
        """
        with suppress(OSError):
            os.unlink(self.path)

    def _rows(self, name: str) -> list[_Row]:
        if not os.path.exists(self.path):
            return []
        root = parse_json(read_text(self.path), f"{self.path} is not a valid JSON")
        rows = root.field(name) if name == "previous" else root.optional(name)
        return [
            (self._resource(row), row.field("config").text(), row.field("value").text())
            for row in (rows.items() if rows else ())
        ]

    def _resource(self, row: JsonNode) -> Resource:
        kind, name = row.field("type").text(), row.field("name").text()
        if kind not in _TYPES or (kind == "broker" and not is_natural(name)):
            raise JsonInputError(f"{self.path} names {kind} '{name}', which has no throttles")
        return Resource(_TYPES[kind], name)


def _rows_of(throttles: Throttles) -> list[_Row]:
    return [
        (resource, key, value)
        for resource, configs in throttles.items()
        for key, value in configs.items()
    ]


def _json(row: _Row) -> dict[str, str]:
    resource, key, value = row
    word = next(word for word, kind in _TYPES.items() if kind is resource.type)
    return {"type": word, "name": resource.name, "config": key, "value": value}
