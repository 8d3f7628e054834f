"""The state of a registry, computed from the records of `_schemas`."""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import Any, Final, TypeVar

from kafkapy.schemas.records import (
    Config,
    Level,
    Mode,
    Record,
    StoredSchema,
    Version,
    fields_of,
    number_of,
    read_config,
    read_version,
)

K = TypeVar("K")
T = TypeVar("T")

CONTEXT: Final = ":."  # what the names of subjects of contexts begin with

_SHOWN_BYTES: Final = 500  # of a key in the log

log: Final = logging.getLogger("kafkapy.schemas")


class RegistryState:
    """Changed only by `apply`, in the order of the topic, so that all registries agree."""

    def __init__(self) -> None:
        self.subjects: dict[str, dict[int, Version]] = {}
        self.by_id: dict[int, StoredSchema] = {}
        self.configs: dict[str | None, Config] = {}
        self.modes: dict[str | None, Mode] = {}
        self.last_id = 0
        self._ids: dict[StoredSchema, tuple[int, ...]] = {}
        self._guids: dict[str, tuple[int, ...]] = {}
        self._uses: defaultdict[int, set[tuple[str, int]]] = defaultdict(set)

    def apply(self, record: Record) -> None:
        """Apply the next record. One that is not understood is logged, and skipped; so is one of a
        context, which counts its ids apart."""
        try:
            key = fields_of(record.key)
            subject, value = key.get("subject"), record.value
            if isinstance(subject, str) and subject.startswith(CONTEXT):
                raise ValueError("contexts are not supported")
            match key.get("keytype"):
                case "SCHEMA" if value is not None:
                    self._put(read_version(value))
                case "SCHEMA":
                    self._remove(str(subject), number_of(key["version"]))
                case "DELETE_SUBJECT" if value is not None:
                    self._mark_deleted(str(subject), number_of(fields_of(value)["version"]))
                case "CONFIG":
                    config = None if value is None else read_config(fields_of(value))
                    _set(self.configs, subject, config)
                case "MODE":
                    mode = None if value is None else fields_of(value).get("mode")
                    _set(self.modes, subject, mode and Mode(mode))
        except (KeyError, TypeError, ValueError) as error:
            log.warning("A record of schemas is skipped: %r: %s", record.key[:_SHOWN_BYTES], error)

    def versions(self, subject: str, *, deleted: bool = False) -> list[Version]:
        """The versions of a subject, ascending; soft-deleted ones too if `deleted`."""
        found = self.subjects.get(subject, {})
        return [found[n] for n in sorted(found) if deleted or not found[n].is_deleted]

    def uses(self, schema_id: int) -> list[Version]:
        """The versions that have a schema, soft-deleted ones too, by subject and version."""
        return [self.subjects[s][v] for s, v in sorted(self._uses.get(schema_id, ()))]

    def id_of(self, schema: StoredSchema) -> int | None:
        """The id of a schema; the first, if it was imported with others too."""
        return next(iter(self._ids.get(schema.content, ())), None)

    def ids_of_guid(self, guid: str) -> tuple[int, ...]:
        """The ids of the schemas with this GUID, ascending. There are several if schemas of two
        types have the same text, or if one was imported with another id."""
        return self._guids.get(guid, ())

    def referrers(self, subject: str, version: int, *, deleted: bool = False) -> list[Version]:
        """The versions of any subject that refer to this one."""
        return [
            each
            for other in sorted(self.subjects)
            for each in self.versions(other, deleted=deleted)
            if any((r.subject, r.version) == (subject, version) for r in each.schema.references)
        ]

    def config(self, subject: str | None) -> Config:
        """The settings that count for a subject: its own, then those of all."""
        fields: dict[str, Any] = {}
        for each in (None, subject):
            if each in self.configs:
                fields |= self.configs[each].fields
        return read_config(fields)

    def level(self, subject: str | None) -> Level:
        """The level that counts for a subject."""
        return self.config(subject).level or Level.BACKWARD

    def mode(self, subject: str | None) -> Mode:
        """The mode that counts for a subject."""
        overall = self.modes.get(None, Mode.READWRITE)
        if overall is Mode.READONLY_OVERRIDE:
            return overall
        return self.modes.get(subject, overall)

    def _put(self, found: Version) -> None:
        self._forget_use(found.subject, found.version)
        self.subjects.setdefault(found.subject, {})[found.version] = found
        self._uses[found.schema_id].add((found.subject, found.version))
        self.by_id[found.schema_id] = found.schema
        ids = self._ids.get(found.schema.content, ())
        self._ids[found.schema.content] = tuple(dict.fromkeys((*ids, found.schema_id)))
        guid = found.schema.guid
        self._guids[guid] = tuple(sorted({*self.ids_of_guid(guid), found.schema_id}))
        self.last_id = max(self.last_id, found.schema_id)

    def _remove(self, subject: str, version: int) -> None:
        """Remove a version, and its schema's id if no other version has it."""
        known = self.subjects.get(subject, {}).get(version)
        self._forget_use(subject, version)
        if known is not None and not self._uses[known.schema_id]:
            self.by_id.pop(known.schema_id, None)
            _drop(self._ids, known.schema.content, known.schema_id)
            _drop(self._guids, known.schema.guid, known.schema_id)
        versions = self.subjects.get(subject, {})
        versions.pop(version, None)
        if not versions:
            self.subjects.pop(subject, None)

    def _forget_use(self, subject: str, version: int) -> None:
        known = self.subjects.get(subject, {}).get(version)
        if known is not None:
            self._uses[known.schema_id].discard((subject, version))

    def _mark_deleted(self, subject: str, last_version: int) -> None:
        versions = self.subjects.get(subject, {})
        for number, known in versions.items():
            if number <= last_version:
                versions[number] = known._replace(is_deleted=True)


def _drop(ids: dict[K, tuple[int, ...]], key: K, schema_id: int) -> None:
    left = tuple(each for each in ids.pop(key, ()) if each != schema_id)
    if left:
        ids[key] = left


def _set(values: dict[str | None, T], subject: str | None, value: T | None) -> None:
    if value:
        values[subject] = value
    else:
        values.pop(subject, None)
