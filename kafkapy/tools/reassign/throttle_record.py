"""Saves the throttles from before a reassignment in a small file beside the reassignment file.

After the moves Kafka's tool deletes every throttle. Here earlier throttles are saved, and
`--verify` restores them once. The throttles that the reassignment sets are saved too: neither a run
that continues an interrupted one, nor another reassignment whose file is in the same directory,
treats them as earlier throttles.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Final, NamedTuple

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


class SavedThrottles(NamedTuple):
    """The content of a record: rows of throttles, and the cluster that they belong to."""

    previous: Sequence[_Row] = ()
    """The throttles to restore."""
    sets: Sequence[_Row] = ()
    """The throttles that the reassignment sets."""
    restored: Sequence[_Row] = ()
    """The earlier throttles that are restored already."""
    cluster: str | None = None


class ThrottleRecord:
    """The file of one reassignment. It exists if the reassignment sets throttles, until they are
    removed, or if there were earlier throttles."""

    def __init__(self, reassignment_path: str, cluster_id: str | None) -> None:
        self.path = reassignment_path + SUFFIX
        self._cluster_id = cluster_id
        # The shell's <(...) is /dev/fd/63. Files beside it, or beside /dev/stdin, have no use.
        self._has_file = not os.path.abspath(self.path).startswith(("/dev/", "/proc/"))

    def read(self) -> SavedThrottles:
        """The content of the file; empty without a file.

        Raises:
            JsonInputError: the file is malformed.
        """
        if not (self._has_file and os.path.exists(self.path)):
            return SavedThrottles()
        root = parse_json(read_text(self.path), f"{self.path} is not a valid JSON")
        cluster = root.optional("cluster")
        return SavedThrottles(
            self._rows(root.field("previous")),
            self._rows(root.optional("set")),
            self._rows(root.optional("restored")),
            cluster.value if cluster else None,
        )

    def throttles_to_restore(
        self, present: Throttles | None, live: Collection[int]
    ) -> dict[Resource, dict[str, str]]:
        """The throttles that `--verify` must restore after a further run of this reassignment,
        given the `present` ones of topics and of the live brokers.

        A present throttle may have been set by an interrupted run, or by another reassignment of
        the directory that was never verified. Then the value from before is restored, if any.
        Brokers that are down have the throttles of the file.

        While partitions move, `present` is None: then all earlier throttles are in the files.

        Raises:
            JsonInputError: the file is malformed.
        """
        own = self.read()
        own = own._replace(previous=[*own.restored, *own.previous])
        records = [own, *self._others()]
        if present is None:
            return by_resource(row for record in reversed(records) for row in record.previous)
        found = [row for row in own.previous if row[0].broker_id not in {None, *live}]
        for row in _rows_of(present):
            setter = next((record for record in records if row in record.sets), None)
            found += [row] if setter is None else [r for r in setter.previous if r[:2] == row[:2]]
        return by_resource(found)

    def write(self, previous: Throttles, sets: Throttles = MappingProxyType({})) -> None:
        """Save the throttles to restore, and add those that are about to be set.

        Raises:
            JsonInputError: the present file is malformed.
            OSError: the file cannot be written.
        """
        own_rows = [*dict.fromkeys([*self.read().sets, *_rows_of(sets)])]
        self._save(SavedThrottles(_rows_of(previous), own_rows))

    def settle(self, live: Collection[int]) -> None:
        """Forget the throttles that were set on topics and live brokers, after the earlier ones
        were restored there. A broker that is down still has its throttles.

        Restored throttles stay in the file, because a further `--verify` deletes all others.
        """
        saved = self.read()
        restored = [row for row in saved.previous if row[0].broker_id in {None, *live}]
        left = SavedThrottles(
            [row for row in saved.previous if row not in restored],
            [row for row in saved.sets if row[0].broker_id not in {None, *live}],
            [*saved.restored, *restored],
        )
        if not any(left):
            self.remove()
        elif left != saved._replace(cluster=None):
            with suppress(OSError):  # the present file restores the same throttles
                self._save(left)

    def remove(self) -> None:
        """Remove the file, because nothing must be restored. It stays if this user may not remove
        it.
        """
        with suppress(OSError):
            os.unlink(self.path)

    def _save(self, saved: SavedThrottles) -> None:
        if not self._has_file:
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), self.path)
        document = {
            "version": _VERSION,
            "cluster": self._cluster_id,
            "previous": [_json(row) for row in saved.previous],
            "set": [_json(row) for row in saved.sets],
            "restored": [_json(row) for row in saved.restored],
        }
        data = f"{json.dumps(document)}\n".encode()
        # This file is the only copy of the earlier throttles. A full disk must not destroy it.
        write_atomically(OsFileSystem(), os.path.abspath(self.path), data)

    def _others(self) -> Iterator[SavedThrottles]:
        """The records of this cluster's other reassignments, as far as they are readable."""
        own_path = os.path.abspath(self.path)
        directory = os.path.dirname(own_path)
        names = []
        with suppress(OSError):  # the file, in a directory that this user may not list
            names = sorted(name for name in os.listdir(directory) if name.endswith(SUFFIX))
        for path in (os.path.join(directory, name) for name in names):
            with suppress(JsonInputError):
                record = ThrottleRecord(path.removesuffix(SUFFIX), self._cluster_id).read()
                if path != own_path and record.cluster == self._cluster_id:
                    yield record

    def _rows(self, rows: JsonNode | None) -> list[_Row]:
        return [
            (self._resource(row), row.field("config").text(), row.field("value").text())
            for row in (rows.items() if rows else ())
        ]

    def _resource(self, row: JsonNode) -> Resource:
        kind, name = row.field("type").text(), row.field("name").text()
        if kind not in _TYPES or (kind == "broker" and not is_natural(name)):
            raise JsonInputError(f"{self.path} names {kind} '{name}', which has no throttles")
        return Resource(_TYPES[kind], name)


def by_resource(rows: Iterable[_Row]) -> dict[Resource, dict[str, str]]:
    """Rows as a mapping; of several values of a config, the last one."""
    found: dict[Resource, dict[str, str]] = {}
    for resource, key, value in rows:
        found.setdefault(resource, {})[key] = value
    return found


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
