"""The REST API: each route's method, path and handler, as in Confluent Schema Registry 7.

A handler reads the path, the query and the body, and returns a decision of the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeVar

from kafkapy.schemas import rest_errors as errors
from kafkapy.schemas.contract import Contract, read_contract
from kafkapy.schemas.records import (
    NUMBER_MAX,
    Config,
    Level,
    Mode,
    SchemaType,
    StoredSchema,
    Version,
    read_references,
)
from kafkapy.schemas.registry import NEXT_VERSION, Decision, Registry
from kafkapy.schemas.registry_state import CONTEXT, RegistryState
from kafkapy.schemas.rest_errors import RestError
from kafkapy.schemas.schema_types import TYPES

E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")

_LATEST: Final = ("latest", "-1")
_DIGITS_MAX: Final = 10
_DEFAULT_CONTEXT: Final = ":.:"
# The fields of a registration and of settings that change something, and are not supported.
_UNSUPPORTED_OF_SCHEMA: Final = ("schemaTagsToAdd", "schemaTagsToRemove", "propagateSchemaTags")
_UNSUPPORTED_OF_CONFIG: Final = ("validateFields", "validateRules", "compatibilityPolicy")
_SUPPORTED_OF_CONFIG: Final = (
    *("alias", "normalize", "compatibilityGroup"),
    *("defaultMetadata", "overrideMetadata", "defaultRuleSet", "overrideRuleSet"),
)


class Call(NamedTuple):
    """A request: the names in its path, its query with all values of a name, and its body's JSON
    object. Earlier clients do not accept fields that they do not know. Some users may only read."""

    path: Mapping[str, str]
    query: Mapping[str, Sequence[str]]
    body: Mapping[str, Any]
    accepts_unknown_fields: bool = False
    may_write: bool = True

    @property
    def subject(self) -> str:
        """
        Raises:
            RestError: 42208 it is in a context other than the default one.
        """
        name = self.path["subject"].removeprefix(_DEFAULT_CONTEXT)
        if name.startswith(CONTEXT):
            raise errors.invalid_subject(name)
        return name

    def word(self, name: str) -> str:
        """The first value of a name in the query."""
        return next(iter(self.query.get(name, ())), "")

    def flag(self, name: str) -> bool:
        return self.word(name).lower() == "true"

    def number(self, name: str, default: int) -> int:
        found = _natural(self.word(name))
        return default if found is None else found


class RestApi:
    """Handlers of the routes."""

    def __init__(self, state: RegistryState, cluster_id: str) -> None:
        self._state = state
        self._registry = Registry(state)
        self._cluster_id = cluster_id

    # schemas

    def types(self, call: Call) -> Decision:
        return Decision([each.value for each in TYPES])

    def schemas(self, call: Call) -> Decision:
        found = []
        for subject in self._subjects(call):
            versions = self._state.versions(subject, deleted=call.flag("deleted"))
            found += versions[-1:] if call.flag("latestOnly") else versions
        return Decision([_version_fields(each) for each in _page(call, found)])

    def schema(self, call: Call) -> Decision:
        answer = self._schema_fields(call, self._schema(call))
        if call.flag("fetchMaxId"):
            answer["maxId"] = self._state.last_id
        return Decision(answer)

    def schema_of_guid(self, call: Call) -> Decision:
        guid = call.path["guid"]
        ids = self._state.ids_of_guid(guid)
        found = self._state.by_id.get(ids[-1]) if ids else None
        if found is None:
            raise errors.schema_not_found(guid)
        return Decision(self._schema_fields(call, found))

    def ids_of_guid(self, call: Call) -> Decision:
        ids = self._state.ids_of_guid(call.path["guid"])
        return Decision([{"context": ".", "id": each} for each in ids[-1:]])

    def schema_text(self, call: Call) -> Decision:
        return Decision(RawSchema(self._formatted(call, self._schema(call)).text))

    def schema_subjects(self, call: Call) -> Decision:
        return Decision(sorted({each.subject for each in self._uses(call)}))

    def schema_versions(self, call: Call) -> Decision:
        return Decision(
            [{"subject": each.subject, "version": each.version} for each in self._uses(call)]
        )

    # subjects

    def subjects(self, call: Call) -> Decision:
        return Decision(list(_page(call, self._subjects(call))))

    def versions(self, call: Call) -> Decision:
        is_deleted_only = call.flag("deletedOnly")
        found = self._state.versions(
            self._subject(call), deleted=call.flag("deleted") or is_deleted_only
        )
        if not found:
            raise errors.subject_not_found(self._subject(call))
        found = [each for each in found if each.is_deleted or not is_deleted_only]
        return Decision([each.version for each in _page(call, found)])

    def version(self, call: Call) -> Decision:
        return Decision(self._formatted_version(call, self._version(call)))

    def version_with_metadata(self, call: Call) -> Decision:
        """The latest version with all the metadata properties that are in the query."""
        wanted = list(zip(call.query.get("key", ()), call.query.get("value", ()), strict=False))
        found = self._state.versions(self._subject(call), deleted=call.flag("deleted"))
        if not found:
            raise errors.subject_not_found(self._subject(call))
        for each in reversed(found):
            if all(each.schema.contract.value(name) == value for name, value in wanted):
                return Decision(self._formatted_version(call, each))
        raise errors.schema_not_found()

    def version_text(self, call: Call) -> Decision:
        return Decision(RawSchema(self._formatted(call, self._version(call).schema).text))

    def referrers(self, call: Call) -> Decision:
        found = self._version(call, deleted=True)
        users = self._state.referrers(found.subject, found.version, deleted=call.flag("deleted"))
        return Decision(sorted({each.schema_id for each in users}))

    def register(self, call: Call) -> Decision:
        _check_supported(call.body, _UNSUPPORTED_OF_SCHEMA, "registration")
        version = call.body.get("version")
        found = self._registry.register(
            self._subject(call),
            self._given(call, may_be_empty="metadata" in call.body or "ruleSet" in call.body),
            _positive(call.body, "id"),
            version if version == NEXT_VERSION else _positive(call.body, "version"),
        )
        registered: Version = found.answer
        answer: dict[str, Any] = {"id": registered.schema_id}
        if call.accepts_unknown_fields:
            answer = _version_fields(registered)
        elif registered.schema.contract != Contract():  # a serializer must know of its rules
            answer |= {"version": registered.version} | registered.schema.fields()
        if "schema" in answer and call.body.get("schema"):
            # Python's client keeps it as its own text, and decodes it: it sends descriptors.
            answer["schema"] = call.body["schema"]
        return found._replace(answer=answer)

    def look_up(self, call: Call) -> Decision:
        found = self._registry.look_up(
            self._subject(call), self._given(call), deleted=call.flag("deleted")
        )
        return Decision(_version_fields(found))

    def delete_subject(self, call: Call) -> Decision:
        return self._registry.delete_subject(self._subject(call), permanent=call.flag("permanent"))

    def delete_version(self, call: Call) -> Decision:
        return self._registry.delete_version(
            self._version(call, deleted=True), permanent=call.flag("permanent")
        )

    # compatibility

    def check_version(self, call: Call) -> Decision:
        if self._state.versions(self._subject(call)):
            return self._check(call, self._version(call))
        if call.path["version"].lower() in _LATEST:
            return self._check(call)
        raise errors.version_not_found(_natural(call.path["version"]) or 0)

    def check_versions(self, call: Call) -> Decision:
        return self._check(call)

    def config(self, call: Call) -> Decision:
        return Decision(_config_fields(self._state.config(None), Level.BACKWARD))

    def subject_config(self, call: Call) -> Decision:
        if call.flag("defaultToGlobal"):
            found = self._state.config(call.subject)
            return Decision(_config_fields(found, Level.BACKWARD))
        if call.subject not in self._state.configs:
            raise errors.no_compatibility(call.subject)
        level = self._state.level(call.subject)
        return Decision(_config_fields(self._state.configs[call.subject], level))

    def set_config(self, call: Call) -> Decision:
        _check_supported(call.body, _UNSUPPORTED_OF_CONFIG, "config")
        changes = {name: call.body[name] for name in _SUPPORTED_OF_CONFIG if name in call.body}
        answer = dict(changes)
        if call.body.get("compatibility") is not None or not changes:
            text = "Invalid compatibility level. Valid values"
            level = _choice(Level, call.body.get("compatibility"), 42203, text)
            changes["compatibilityLevel"] = answer["compatibility"] = level.value
        decision = self._registry.set_config(_subject_or_all(call), changes)
        return decision._replace(answer=answer)

    def remove_config(self, call: Call) -> Decision:
        decision = self._registry.remove_config(_subject_or_all(call))
        return decision._replace(answer=_config_fields(decision.answer, Level.BACKWARD))

    # modes

    def mode(self, call: Call) -> Decision:
        return Decision({"mode": self._state.mode(None).value})

    def subject_mode(self, call: Call) -> Decision:
        mode = self._state.mode(call.subject)
        is_own = call.subject in self._state.modes or mode is Mode.READONLY_OVERRIDE
        if not (is_own or call.flag("defaultToGlobal")):
            raise errors.no_mode(call.subject)
        return Decision({"mode": mode.value})

    def set_mode(self, call: Call) -> Decision:
        mode = _choice(Mode, call.body.get("mode"), 42204, "Invalid mode. Valid values")
        return self._registry.set_mode(_subject_or_all(call), mode, force=call.flag("force"))

    def remove_mode(self, call: Call) -> Decision:
        return self._registry.set_mode(_subject_or_all(call), None, force=False)

    # the registry itself

    def root(self, call: Call) -> Decision:
        return Decision({})

    def contexts(self, call: Call) -> Decision:
        return Decision(["."])

    def cluster(self, call: Call) -> Decision:
        clusters = {"kafka-cluster": self._cluster_id, "schema-registry-cluster": "schema-registry"}
        return Decision({"scope": {"path": [], "clusters": clusters}, "id": ""})

    # reading a request

    def _subject(self, call: Call) -> str:
        """The subject in the path or, if it is an alias, the one that it stands for."""
        name = call.subject
        return self._state.configs[name].alias or name if name in self._state.configs else name

    def _given(self, call: Call, *, may_be_empty: bool = False) -> StoredSchema:
        """The schema in the body, normalized if the query or the subject's settings say so.

        Raises:
            RestError: 42201.
        """
        given = _given_schema(call.body, may_be_empty=may_be_empty)
        is_normal = call.flag("normalize") or self._state.config(self._subject(call)).normalize
        return self._registry.normalized(given) if given.text and is_normal else given

    def _subjects(self, call: Call) -> list[str]:
        prefix = call.word("subjectPrefix").removeprefix(_DEFAULT_CONTEXT)
        prefix = "" if prefix == ":*:" else prefix
        return [
            subject
            for subject in sorted(self._state.subjects)
            if subject.startswith(prefix) and self._is_listed(call, subject)
        ]

    def _is_listed(self, call: Call, subject: str) -> bool:
        if call.flag("deletedOnly"):
            return not self._state.versions(subject)
        return bool(self._state.versions(subject, deleted=call.flag("deleted")))

    def _schema(self, call: Call) -> StoredSchema:
        schema_id = _schema_id(call)
        found = self._state.by_id.get(schema_id)
        if found is None:
            raise errors.schema_not_found(schema_id)
        return found

    def _schema_fields(self, call: Call, schema: StoredSchema) -> dict[str, Any]:
        return {"guid": schema.guid} | self._formatted(call, schema).fields()

    def _formatted(self, call: Call, schema: StoredSchema) -> StoredSchema:
        name = call.word("format")
        return self._registry.formatted(schema, name) if name else schema

    def _formatted_version(self, call: Call, found: Version) -> dict[str, Any]:
        return _version_fields(found) | self._formatted(call, found.schema).fields()

    def _uses(self, call: Call) -> list[Version]:
        self._schema(call)
        found = self._state.uses(_schema_id(call))
        return [each for each in found if call.flag("deleted") or not each.is_deleted]

    def _version(self, call: Call, *, deleted: bool = False) -> Version:
        """The version in the path. Soft-deleted ones count if the query, or the caller, says so.

        Raises:
            RestError: 40401 no such subject, 40402 no such version, 42202 not a version.
        """
        text, subject = call.path["version"], self._subject(call)
        is_latest, number = text.lower() in _LATEST, _natural(text)
        if not is_latest and not number:
            raise errors.invalid_version(text)
        deleted = (deleted or call.flag("deleted")) and not is_latest
        found = self._state.versions(subject, deleted=deleted)
        if not found:
            raise errors.subject_not_found(subject)
        if is_latest:
            return found[-1]
        for each in found:
            if each.version == number:
                return each
        raise errors.version_not_found(number or 0)

    def _check(self, call: Call, version: Version | None = None) -> Decision:
        given = self._given(call)
        try:
            reasons = self._registry.incompatibilities(self._subject(call), given, version)
        except RestError as error:
            if not call.flag("verbose"):
                raise
            reasons = [error.message]
        answer: dict[str, Any] = {"is_compatible": not reasons}
        if call.flag("verbose"):
            answer["messages"] = reasons
        return Decision(answer)


class RawSchema(str):
    """An answer that is a schema's text, not JSON of it."""


ROUTES: Final[tuple[tuple[str, str, Callable[[RestApi, Call], Decision]], ...]] = (
    ("GET", "/", RestApi.root),
    ("GET", "/contexts", RestApi.contexts),
    ("GET", "/v1/metadata/id", RestApi.cluster),
    ("GET", "/schemas", RestApi.schemas),
    ("GET", "/schemas/types", RestApi.types),
    ("GET", "/schemas/ids/{id}", RestApi.schema),
    ("GET", "/schemas/guids/{guid}", RestApi.schema_of_guid),
    ("GET", "/schemas/guids/{guid}/ids", RestApi.ids_of_guid),
    ("GET", "/schemas/ids/{id}/schema", RestApi.schema_text),
    ("GET", "/schemas/ids/{id}/subjects", RestApi.schema_subjects),
    ("GET", "/schemas/ids/{id}/versions", RestApi.schema_versions),
    ("GET", "/subjects", RestApi.subjects),
    ("POST", "/subjects/{subject}", RestApi.look_up),
    ("DELETE", "/subjects/{subject}", RestApi.delete_subject),
    ("GET", "/subjects/{subject}/metadata", RestApi.version_with_metadata),
    ("GET", "/subjects/{subject}/versions", RestApi.versions),
    ("POST", "/subjects/{subject}/versions", RestApi.register),
    ("GET", "/subjects/{subject}/versions/{version}", RestApi.version),
    ("DELETE", "/subjects/{subject}/versions/{version}", RestApi.delete_version),
    ("GET", "/subjects/{subject}/versions/{version}/schema", RestApi.version_text),
    ("GET", "/subjects/{subject}/versions/{version}/referencedby", RestApi.referrers),
    ("POST", "/compatibility/subjects/{subject}/versions", RestApi.check_versions),
    ("POST", "/compatibility/subjects/{subject}/versions/{version}", RestApi.check_version),
    ("GET", "/config", RestApi.config),
    ("PUT", "/config", RestApi.set_config),
    ("DELETE", "/config", RestApi.remove_config),
    ("GET", "/config/{subject}", RestApi.subject_config),
    ("PUT", "/config/{subject}", RestApi.set_config),
    ("DELETE", "/config/{subject}", RestApi.remove_config),
    ("GET", "/mode", RestApi.mode),
    ("PUT", "/mode", RestApi.set_mode),
    ("DELETE", "/mode", RestApi.remove_mode),
    ("GET", "/mode/{subject}", RestApi.subject_mode),
    ("PUT", "/mode/{subject}", RestApi.set_mode),
    ("DELETE", "/mode/{subject}", RestApi.remove_mode),
)


def _version_fields(found: Version) -> dict[str, Any]:
    names = {"subject": found.subject, "version": found.version, "id": found.schema_id}
    deleted = {"deleted": True} if found.is_deleted else {}
    return names | {"guid": found.schema.guid} | found.schema.fields() | deleted


def _config_fields(config: Config, default: Level) -> dict[str, Any]:
    others = {name: each for name, each in config.fields.items() if name != "subject"}
    return {"compatibilityLevel": (config.level or default).value} | others


def _check_supported(body: Mapping[str, Any], names: tuple[str, ...], where: str) -> None:
    """
    Raises:
        RestError: 42205 a field would be ignored.
    """
    for name in names:
        if body.get(name):
            raise errors.not_permitted(f"This registry does not support {name} in a {where}")


def _given_schema(body: Mapping[str, Any], *, may_be_empty: bool = False) -> StoredSchema:
    """
    Raises:
        RestError: 42201 the type is not known, or there is no schema; a field has another type.
    """
    text, name = body.get("schema"), body.get("schemaType") or SchemaType.AVRO
    if may_be_empty and text in (None, ""):
        text = ""
    elif not isinstance(text, str) or not text.strip():
        raise RestError(42201, "Invalid schema: the request has no field 'schema' with a text")
    if name not in TYPES:
        known = ", ".join(TYPES)
        raise RestError(42201, f"Invalid schema type {name}. This registry has {known}")
    try:
        references = read_references(body.get("references"))
        contract = read_contract(body.get("metadata"), body.get("ruleSet"))
    except ValueError as error:
        raise RestError(42201, f"Invalid schema: {error}") from error
    return StoredSchema(SchemaType(name), text, references, contract)


def _positive(body: Mapping[str, Any], name: str) -> int | None:
    """A number of an import. Clients send -1 or 0 for none.

    Raises:
        RestError: 42201 not a number.
    """
    found = body.get(name)
    if found is None:
        return None
    if not isinstance(found, int) or found > NUMBER_MAX:
        raise RestError(42201, f"Invalid schema: '{name}' is not a number up to {NUMBER_MAX}")
    return found if found > 0 else None


def _schema_id(call: Call) -> int:
    found = _natural(call.path["id"])
    if found is None:
        raise RestError(404, "HTTP 404 Not Found")
    return found


def _natural(text: str) -> int | None:
    """A number of 31 bits, None if the text is not one."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX):
        return None
    return int(text) if int(text) <= NUMBER_MAX else None


def _subject_or_all(call: Call) -> str | None:
    return call.subject if "subject" in call.path else None


def _choice(kind: type[E], given: Any, code: int, sentence: str) -> E:
    name = given.upper() if isinstance(given, str) else ""
    if name not in kind.__members__:
        raise RestError(code, f"{sentence} are {', '.join(kind)}")
    return kind(name)


def _page(call: Call, found: list[T]) -> list[T]:
    """The rows that `offset` and `limit` select. A negative limit means all."""
    start, limit = call.number("offset", 0), call.number("limit", -1)
    return found[start:] if limit < 0 else found[start : start + limit]
