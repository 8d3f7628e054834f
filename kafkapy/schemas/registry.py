"""Decisions of the registry: a request and the present state in, an answer and new records out.

Nothing is changed here. The records are written to the topic, and change the state when they are
read from it (`RegistryState.apply`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from kafkapy.schemas import rest_errors as errors
from kafkapy.schemas.parsed_schema import InvalidSchema, ParsedSchema
from kafkapy.schemas.records import (
    Level,
    Mode,
    Record,
    StoredSchema,
    Version,
    level_record,
    mode_record,
    no_schema_record,
    schema_record,
    subject_deleted_record,
)
from kafkapy.schemas.registry_state import RegistryState
from kafkapy.schemas.schema_types import parse

# Large schemas may differ in thousands of places.
_REASONS_MAX: Final = 50
_REASON_LENGTH_MAX: Final = 500
_READ_ONLY: Final = (Mode.READONLY, Mode.READONLY_OVERRIDE)


class Decision(NamedTuple):
    """An answer, as JSON, which is true once the records are written."""

    answer: Any
    records: Sequence[Record] = ()


class Registry:
    """The operations that change something, and the checks of compatibility."""

    def __init__(self, state: RegistryState) -> None:
        self._state = state

    def register(
        self, subject: str, given: StoredSchema, schema_id: int | None, version: int | None
    ) -> Decision:
        """Add a version, unless the subject has this schema. `schema_id` and `version` are only for
        the mode IMPORT.

        Raises:
            RestError: 409 incompatible, 42201 not a schema, 42205 not permitted in this mode.
        """
        self._check_may_change(subject)
        parsed = self._parse(given)
        schema = given._replace(text=parsed.text)
        is_import = self._state.mode(subject) is Mode.IMPORT
        if not is_import and (schema_id is not None or version is not None):
            raise errors.not_permitted(f"Subject {subject} is not in import mode")
        known = self._find(subject, schema, parsed)
        if known is not None and schema_id in (None, known.schema_id):
            return Decision(_ids(known))
        if is_import:
            self._check_import(subject, schema, schema_id, version)
        else:
            reasons = self._incompatibilities(subject, schema, parsed, self._compared(subject))
            if reasons:
                raise errors.incompatible(subject, reasons)
        used = self._state.versions(subject, deleted=True)
        new = Version(
            subject,
            version or (used[-1].version + 1 if used else 1),
            schema_id or self._state.id_of(schema) or self._state.last_id + 1,
            schema,
        )
        return Decision(_ids(new), [schema_record(new)])

    def look_up(self, subject: str, given: StoredSchema, *, deleted: bool) -> Version:
        """The version of a subject that has a schema.

        Raises:
            RestError: 40401 no such subject, 40403 it does not have this schema, 42201.
        """
        if not self._state.versions(subject, deleted=deleted):
            raise errors.subject_not_found(subject)
        parsed = self._parse(given)
        found = self._find(subject, given._replace(text=parsed.text), parsed, deleted=deleted)
        if found is None:
            raise errors.schema_not_found()
        return found

    def incompatibilities(
        self, subject: str, given: StoredSchema, compared: Sequence[Version]
    ) -> list[str]:
        """The reasons why a schema may not follow some versions, at the subject's level; none if it
        may.

        Raises:
            RestError: 42201 not a schema.
        """
        return self._incompatibilities(subject, given, self._parse(given), compared)

    def _incompatibilities(
        self, subject: str, given: StoredSchema, new: ParsedSchema, compared: Sequence[Version]
    ) -> list[str]:
        level = self._state.level(subject)
        reasons = []
        for each in reversed(compared):
            if each.schema.schema_type is not given.schema_type:
                if level is not Level.NONE:
                    reasons.append(f"version {each.version} is {each.schema.schema_type}")
                continue
            old = self._parse(each.schema)
            if level.reads_earlier:
                reasons += [f"version {each.version}: {r}" for r in new.incompatibilities(old)]
            if level.is_read_by_earlier:
                reasons += [f"version {each.version}: {r}" for r in old.incompatibilities(new)]
        return [reason[:_REASON_LENGTH_MAX] for reason in reasons[:_REASONS_MAX]]

    def delete_subject(self, subject: str, *, permanent: bool) -> Decision:
        """Soft-delete all versions; or remove those that are soft-deleted, if all are.

        Raises:
            RestError: 40401, 40404 soft-deleted before, 40405 not soft-deleted before, 42205, 42206
                another schema refers to a version.
        """
        self._check_may_change(subject)
        found = self._state.versions(subject, deleted=True)
        present = [each for each in found if not each.is_deleted]
        if not found:
            raise errors.subject_not_found(subject)
        if permanent and present:
            raise errors.subject_not_soft_deleted(subject)
        if not permanent and not present:
            raise errors.subject_soft_deleted(subject)
        affected = found if permanent else present
        for each in affected:
            self._check_not_referenced(each)
        if permanent:
            records = [no_schema_record(subject, each.version) for each in found]
        else:
            records = [subject_deleted_record(subject, found[-1].version)]
            if subject in self._state.levels:
                records.append(level_record(subject, None))
            if subject in self._state.modes:
                records.append(mode_record(subject, None))
        return Decision([each.version for each in affected], records)

    def delete_version(self, version: Version, *, permanent: bool) -> Decision:
        """Soft-delete a version, or remove a soft-deleted one.

        Raises:
            RestError: 40406 soft-deleted before, 40407 not soft-deleted before, 42205, 42206.
        """
        self._check_may_change(version.subject)
        if permanent and not version.is_deleted:
            raise errors.version_not_soft_deleted(version.subject, version.version)
        if not permanent and version.is_deleted:
            raise errors.version_soft_deleted(version.subject, version.version)
        self._check_not_referenced(version)
        if permanent:
            record = no_schema_record(version.subject, version.version)
        else:
            record = schema_record(version._replace(is_deleted=True))
        return Decision(version.version, [record])

    def set_level(self, subject: str | None, level: Level | None) -> Decision:
        """Set the level of a subject, or of all without one. None removes it.

        Raises:
            RestError: 40401 there is none to remove, 42205.
        """
        self._check_may_change(subject)
        if level is not None:
            return Decision({"compatibility": level.value}, [level_record(subject, level)])
        known = self._state.levels.get(subject)
        if known is None and subject is not None:
            raise errors.subject_not_found(subject)
        answer = {"compatibilityLevel": (known or Level.BACKWARD).value}
        return Decision(answer, [level_record(subject, None)])

    def set_mode(self, subject: str | None, mode: Mode | None, *, force: bool) -> Decision:
        """Set the mode of a subject, or of all without one. None removes it.

        Raises:
            RestError: 40401 there is none to remove, 42205 IMPORT while there are schemas.
        """
        known = self._state.modes.get(subject)
        if mode is None:
            if known is None and subject is not None:
                raise errors.subject_not_found(subject)
            answer = {"mode": (known or Mode.READWRITE).value}
            return Decision(answer, [mode_record(subject, None)])
        has_schemas = self._state.versions(subject) if subject else self._state.subjects
        if mode is Mode.IMPORT and known is not mode and has_schemas and not force:
            raise errors.not_permitted("Cannot import since found existing subjects")
        return Decision({"mode": mode.value}, [mode_record(subject, mode)])

    def formatted(self, schema: StoredSchema, name: str) -> StoredSchema:
        """A schema with the text in a format.

        Raises:
            RestError: 42201 another program wrote a schema that cannot be parsed.
        """
        return schema._replace(text=self._parse(schema).formatted(name))

    def _parse(self, schema: StoredSchema) -> ParsedSchema:
        try:
            return parse(self._state, schema)
        except InvalidSchema as error:
            raise errors.invalid_schema(schema, str(error)) from error

    def _find(
        self, subject: str, schema: StoredSchema, parsed: ParsedSchema, *, deleted: bool = False
    ) -> Version | None:
        """The latest version of a subject with a schema; with another text of it, if none has
        this."""
        versions = self._state.versions(subject, deleted=deleted)[::-1]
        for each in versions:
            if each.schema == schema:
                return each
        for each in versions:
            is_alike = each.schema._replace(text="") == schema._replace(text="")
            if is_alike and self._parse(each.schema).identity == parsed.identity:
                return each
        return None

    def _compared(self, subject: str) -> list[Version]:
        """The versions that a new one must be compatible with."""
        level, versions = self._state.level(subject), self._state.versions(subject)
        if level is Level.NONE:
            return []
        return versions if level.is_transitive else versions[-1:]

    def _check_may_change(self, subject: str | None) -> None:
        if self._state.mode(subject) in _READ_ONLY:
            where = "The registry" if subject is None else f"Subject {subject}"
            raise errors.not_permitted(f"{where} is in read-only mode")

    def _check_import(
        self, subject: str, schema: StoredSchema, schema_id: int | None, version: int | None
    ) -> None:
        """Check that neither the id nor the version is that of another schema."""
        known = None if schema_id is None else self._state.by_id.get(schema_id)
        if known is not None and known != schema:
            raise errors.not_permitted(
                f"Overwrite new schema with id {schema_id} is not permitted."
            )
        if version in self._state.subjects.get(subject, {}):
            raise errors.not_permitted(f"Subject {subject} has a version {version}")

    def _check_not_referenced(self, version: Version) -> None:
        if self._state.referrers(version.subject, version.version):
            raise errors.referenced(version.subject, version.version)


def _ids(version: Version) -> dict[str, Any]:
    return {"id": version.schema_id, "guid": version.schema.guid}
