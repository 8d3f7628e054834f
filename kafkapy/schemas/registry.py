"""Decisions of the registry: a request and the present state in, an answer and new records out.

Nothing is changed here. The records are written to the topic, and change the state when they are
read from it (`RegistryState.apply`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from kafkapy.schemas import rest_errors as errors
from kafkapy.schemas.contract import VERSION_PROPERTY, Contract, RuleSet, check_rules
from kafkapy.schemas.parsed_schema import (
    REASON_LENGTH_MAX,
    REASONS_MAX,
    RESOLVED,
    Budget,
    InvalidSchema,
    ParsedSchema,
)
from kafkapy.schemas.records import (
    Level,
    Mode,
    Record,
    StoredSchema,
    Version,
    config_record,
    mode_record,
    no_schema_record,
    read_config,
    schema_record,
    subject_deleted_record,
)
from kafkapy.schemas.registry_state import RegistryState
from kafkapy.schemas.schema_types import parse, prepare

_READ_ONLY: Final = (Mode.READONLY, Mode.READONLY_OVERRIDE)
# The version of a registration that is the next one, and is kept in confluent:version.
NEXT_VERSION: Final = -1
_RESERVED: Final = ("__GLOBAL", "__EMPTY")  # names of Confluent's REST API


class Decision(NamedTuple):
    """An answer, which is true once the records are written."""

    answer: Any
    records: Sequence[Record] = ()


class Registry:
    """The operations that change something, and the checks of compatibility."""

    def __init__(self, state: RegistryState) -> None:
        self._state = state

    def normalized(self, given: StoredSchema) -> StoredSchema:
        """A schema with the text and the references of all that differ only in their order.

        Raises:
            RestError: 42201 not a schema, or a default is not of its type.
        """
        schema = self._canonical(given)
        try:
            text = parse(self._state, schema).normalized
        except InvalidSchema as error:
            raise errors.invalid_schema(schema, str(error)) from error
        references = sorted(set(schema.references), key=lambda each: (each[1:], each.name))
        return schema._replace(text=text, references=tuple(references))

    def register(
        self, subject: str, given: StoredSchema, schema_id: int | None, version: int | None
    ) -> Decision:
        """Add a version, unless the subject has this schema. Without a text, it is the latest
        version's, with another contract. Only the mode IMPORT takes any `schema_id` and `version`;
        otherwise the version is the next one. A schema that the subject has is answered in each
        mode, because serializers register theirs.

        Raises:
            RestError: 409 incompatible, 42201 not a schema, 42205 not permitted in this mode, 42210
                a rule is wrong.
        """
        _check_name(subject)
        _check_rules(given.contract)
        known = self._known(subject, given, version)
        if known is not None and schema_id in (None, known.schema_id):
            return Decision(known)
        self._check_may_change(subject)
        if self._state.mode(subject) is Mode.IMPORT:
            found = self._imported(subject, given, schema_id, version)
        else:
            found = self._next(subject, given, version, schema_id)
        used = self._state.versions(subject, deleted=True)
        if found in used:
            return Decision(found)
        records = [
            no_schema_record(subject, each.version)
            for each in used
            if each.is_deleted
            and each.schema_id == found.schema_id
            and each.version < found.version
        ]
        return Decision(found, [*records, schema_record(found)])

    def _imported(
        self, subject: str, given: StoredSchema, schema_id: int | None, version: int | None
    ) -> Version:
        if schema_id is None:
            raise errors.not_permitted(f"Subject {subject} is not in read-write mode")
        schema = self._canonical(given)
        known = self._find(subject, schema)
        if known is not None and known.schema_id == schema_id:
            return known
        version = None if version == NEXT_VERSION else version
        self._check_import(subject, schema, schema_id, version)
        return self._new(subject, schema, schema_id, version)

    def _next(
        self, subject: str, given: StoredSchema, version: int | None, schema_id: int | None
    ) -> Version:
        if schema_id is not None:
            raise errors.not_permitted(f"Subject {subject} is not in import mode")
        schema = self._completed(subject, given)
        next_version = self._next_version(subject)
        if version not in (None, NEXT_VERSION, next_version):
            raise errors.invalid_schema(schema, "Version is not one more than previous version")
        contract = schema.contract
        if version is not None or contract.value(VERSION_PROPERTY) is not None:
            schema = schema._replace(contract=contract.with_version(next_version))
        reasons = self._incompatibilities(subject, schema, self._compared(subject, schema))
        if reasons:
            raise errors.incompatible(subject, reasons)
        return self._new(subject, schema)

    def _new(
        self,
        subject: str,
        schema: StoredSchema,
        schema_id: int | None = None,
        version: int | None = None,
    ) -> Version:
        return Version(
            subject,
            version or self._next_version(subject),
            schema_id or self._state.id_of(schema) or self._state.last_id + 1,
            schema,
        )

    def _next_version(self, subject: str) -> int:
        used = self._state.versions(subject, deleted=True)
        return used[-1].version + 1 if used else 1

    def look_up(self, subject: str, given: StoredSchema, *, deleted: bool) -> Version:
        """The version of a subject that has a schema.

        Raises:
            RestError: 40401 no such subject, 40403 it does not have this schema, 42201.
        """
        if not self._state.versions(subject, deleted=deleted):
            raise errors.subject_not_found(subject)
        schema = self._canonical(given)
        found = self._find(subject, schema, deleted=deleted)
        if found is None:
            completed = self._completed(subject, given)
            found = self._find(subject, completed, deleted=deleted)
        if found is None:
            raise errors.schema_not_found()
        return found

    def incompatibilities(
        self, subject: str, given: StoredSchema, version: Version | None = None
    ) -> list[str]:
        """The reasons why a schema may not follow a version or, without one, those with which it is
        compared at the subject's level; none if it may.

        Raises:
            RestError: 42201 not a schema.
        """
        schema = self._completed(subject, given)
        if version is None:
            return self._incompatibilities(subject, schema, self._compared(subject, schema))
        return self._incompatibilities(subject, schema, self._of_group(subject, schema, [version]))

    def _incompatibilities(
        self, subject: str, given: StoredSchema, compared: Sequence[Version]
    ) -> list[str]:
        level, new = self._state.level(subject), self._parse(given)
        prepare(self._state, (each.schema for each in compared))
        reasons = list[str]()
        budget = Budget()
        for each in reversed(compared):
            if len(reasons) >= REASONS_MAX or budget.is_spent:
                break
            if each.schema.schema_type is not given.schema_type:
                if level is not Level.NONE:
                    reasons.append(f"version {each.version} is {each.schema.schema_type}")
                continue
            old = self._parse(each.schema)
            budget.extend(len(each.schema.text) + len(given.text))
            found = new.incompatibilities(old, budget) if level.reads_earlier else []
            if level.is_read_by_earlier:
                found = found + old.incompatibilities(new, budget)
            reasons += [f"version {each.version}: {reason}" for reason in found]
        return [reason[:REASON_LENGTH_MAX] for reason in reasons[:REASONS_MAX]]

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
            deleted = subject_deleted_record(subject, found[-1].version)
            records = [deleted, *self._no_settings(subject)]
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
            return Decision(version.version, [record])
        records = [schema_record(version._replace(is_deleted=True))]
        if self._state.versions(version.subject) == [version]:
            records += self._no_settings(version.subject)
        return Decision(version.version, records)

    def _no_settings(self, subject: str) -> list[Record]:
        """The records that remove the settings and the mode of a subject."""
        records = list[Record]()
        if subject in self._state.configs:
            records.append(config_record(subject, None))
        if subject in self._state.modes:
            records.append(mode_record(subject, None))
        return records

    def set_config(self, subject: str | None, changes: Mapping[str, Any]) -> Decision:
        """Change fields of the settings of a subject, or of all without one. None removes a field.

        Raises:
            RestError: 42201 a field has another type, 42205, 42210 a rule is wrong.
        """
        self._check_may_change(subject)
        known = self._state.configs.get(subject)
        try:
            config = read_config({**(known.fields if known else {}), **changes})
        except ValueError as error:
            raise errors.RestError(42201, f"Invalid config: {error}") from error
        for contract in (config.defaults, config.overrides):
            _check_rules(contract)
        return Decision(changes, [config_record(subject, config)])

    def remove_config(self, subject: str | None) -> Decision:
        """Remove the settings of a subject, or of all without one; the answer has the former ones.

        Raises:
            RestError: 40401 there are none, 42205.
        """
        self._check_may_change(subject)
        known = self._state.configs.get(subject)
        if known is None and subject is not None:
            raise errors.subject_not_found(subject)
        return Decision(known or read_config({}), [config_record(subject, None)])

    def set_mode(self, subject: str | None, mode: Mode | None, *, force: bool) -> Decision:
        """Set the mode of a subject, or of all without one. None removes it. IMPORT removes
        soft-deleted versions, because other schemas may be imported with their numbers.

        Raises:
            RestError: 40401 there is none to remove, 42205 IMPORT while there are schemas, 42206
                another schema refers to a soft-deleted version, 42208.
        """
        _check_name(subject)
        known = self._state.modes.get(subject)
        if mode is None:
            if known is None and subject is not None:
                raise errors.subject_not_found(subject)
            answer = {"mode": (known or Mode.READWRITE).value}
            return Decision(answer, [mode_record(subject, None)])
        records = [mode_record(subject, mode)]
        if mode is Mode.IMPORT and self._state.mode(subject) is not mode and not force:
            for name in [subject] if subject else sorted(self._state.subjects):
                if self._state.versions(name):
                    raise errors.not_permitted("Cannot import since found existing subjects")
                removed = self._state.versions(name, deleted=True)
                for each in removed:
                    self._check_not_referenced(each)
                records += [no_schema_record(name, each.version) for each in removed]
        return Decision({"mode": mode.value}, records)

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

    def _canonical(self, schema: StoredSchema) -> StoredSchema:
        """A schema with its references as they are stored, and its text."""
        references = []
        for each in schema.references:
            known = self._state.versions(each.subject)
            latest = known[-1].version if known else each.version
            references.append(each._replace(version=latest) if each.version == -1 else each)
        schema = schema._replace(references=tuple(references))
        return schema._replace(text=self._parse(schema).text)

    def _completed(self, subject: str, given: StoredSchema) -> StoredSchema:
        """A schema as it is registered: with the text and the contract of the latest version where
        they are not given, and with the defaults and overrides of the subject."""
        versions, config = self._state.versions(subject), self._state.config(subject)
        if versions and not given.text:
            given = versions[-1].schema._replace(contract=given.contract)
        contract = given.contract
        if versions:
            contract = contract.or_else(versions[-1].schema.contract)
        contract = config.defaults.merged(contract).merged(config.overrides)
        return self._canonical(given)._replace(contract=contract)

    def _known(self, subject: str, given: StoredSchema, version: int | None) -> Version | None:
        """The version that has a schema, with its contract as given or else as completed. None if
        the registration is for a version that is not the latest."""
        wanted, config = list[StoredSchema](), self._state.config(subject)
        if given.text and config.defaults == config.overrides == Contract():
            wanted.append(self._canonical(given))
        if version is None:
            wanted.append(self._completed(subject, given))
        for schema in dict.fromkeys(wanted):
            found = self._find(subject, schema)
            if found is not None and (
                version is None
                or (version == NEXT_VERSION and found in self._state.versions(subject)[-1:])
            ):
                return found
        return None

    def _find(self, subject: str, schema: StoredSchema, *, deleted: bool = False) -> Version | None:
        """The latest version of a subject with a schema; with another text of it, if none has
        this; or else with references, if the schema has their types in its text."""
        versions = self._state.versions(subject, deleted=deleted)[::-1]
        for each in versions:
            if each.schema.content == schema.content:
                return each
        alike = [
            each
            for each in versions
            if each.schema.schema_type is schema.schema_type
            and _is_contract_of(each, schema.contract)
        ]
        if not alike:
            return None
        given = self._parse(schema)
        prepare(self._state, (each.schema for each in alike))
        for each in alike:
            has_same = each.schema.references == schema.references
            if has_same and self._parse(each.schema).identity == given.identity:
                return each
        if schema.references:
            return None
        resolved = given.formatted(RESOLVED)
        for each in alike:
            if each.schema.references and self._parse(each.schema).formatted(RESOLVED) == resolved:
                return each
        return None

    def _compared(self, subject: str, schema: StoredSchema) -> Sequence[Version]:
        """The versions that a new one must be compatible with."""
        level = self._state.level(subject)
        if level is Level.NONE:
            return []
        versions = self._of_group(subject, schema, self._state.versions(subject))
        return versions if level.is_transitive else versions[-1:]

    def _of_group(
        self, subject: str, schema: StoredSchema, versions: Sequence[Version]
    ) -> Sequence[Version]:
        """The versions with the same value of the metadata property that is the subject's
        compatibility group, if it has one."""
        group = self._state.config(subject).group
        if group is None:
            return versions
        value = schema.contract.value(group)
        return [each for each in versions if each.schema.contract.value(group) == value]

    def _check_may_change(self, subject: str | None) -> None:
        _check_name(subject)
        if self._state.mode(subject) in _READ_ONLY:
            where = "The registry" if subject is None else f"Subject {subject}"
            raise errors.not_permitted(f"{where} is in read-only mode")

    def _check_import(
        self, subject: str, schema: StoredSchema, schema_id: int | None, version: int | None
    ) -> None:
        """Check that neither the id nor the version is that of another schema."""
        known = None if schema_id is None else self._state.by_id.get(schema_id)
        if known is not None and known.content != schema.content:
            raise errors.not_permitted(
                f"Overwrite new schema with id {schema_id} is not permitted."
            )
        if version in self._state.subjects.get(subject, {}):
            raise errors.not_permitted(f"Subject {subject} has a version {version}")

    def _check_not_referenced(self, version: Version) -> None:
        if self._state.referrers(version.subject, version.version):
            raise errors.referenced(version.subject, version.version)


def _check_name(subject: str | None) -> None:
    """
    Raises:
        RestError: 42208 a reserved name, or a control character.
    """
    if subject in _RESERVED or any(
        char < " " or "\x7f" <= char <= "\x9f" for char in subject or ""
    ):
        raise errors.invalid_subject(subject or "")


def _is_contract_of(version: Version, contract: Contract) -> bool:
    """Whether a version has a contract. If only one of them has a confluent:version, it does not
    count in the version's, and must be the version's number in the other."""
    stored = version.schema.contract
    if (contract.version is None) != (stored.version is None):
        if contract.version not in (None, version.version):
            return False
        contract, stored = contract.with_version(None), stored.with_version(None)
    return contract.content == stored.content


def _check_rules(contract: Contract) -> None:
    """
    Raises:
        RestError: 42210.
    """
    try:
        check_rules(contract.rules or RuleSet())
    except ValueError as error:
        raise errors.invalid_rules(str(error)) from error
