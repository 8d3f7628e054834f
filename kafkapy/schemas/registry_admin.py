"""Lists, registers, compares and deletes the schemas of a registry through its REST API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from kafkapy.schemas.records import Level, Reference, SchemaType
from kafkapy.schemas.registry_client import RegistryClient, RegistryError, in_path

T = TypeVar("T")


class NewSchema(NamedTuple):
    """A schema that is to be registered or compared."""

    schema_type: SchemaType
    text: str
    references: Sequence[Reference] = ()

    def body(self) -> dict[str, Any]:
        """The body of a request."""
        references = [each._asdict() for each in self.references]
        return {"schemaType": self.schema_type, "schema": self.text, "references": references}


class SubjectVersion(NamedTuple):
    """A version of a subject; `fields` is its JSON in the API."""

    subject: str
    version: int
    schema_id: int
    schema_type: str
    text: str
    fields: Mapping[str, Any]


class RegistryAdmin:
    """Administers one registry. Its methods raise Refused if the registry refuses, and
    RegistryError if it does not answer or its answer is not understood."""

    def __init__(self, client: RegistryClient) -> None:
        self._client = client

    def subjects(self, *, deleted: bool = False) -> list[str]:
        """The subjects, sorted; `deleted`: with those that are soft-deleted."""
        return sorted(self._list(f"subjects{_deleted(deleted)}", str))

    def versions(self, subject: str, *, deleted: bool = False) -> list[SubjectVersion]:
        """The versions of a subject, ascending."""
        path = f"subjects/{in_path(subject)}/versions"
        numbers = self._list(f"{path}{_deleted(deleted)}", int)
        return [self._version(f"{path}/{each}{_deleted(deleted)}") for each in sorted(numbers)]

    def version(self, subject: str, version: str, *, deleted: bool = False) -> SubjectVersion:
        """A version by its number or `latest`."""
        path = f"subjects/{in_path(subject)}/versions/{in_path(version)}"
        return self._version(f"{path}{_deleted(deleted)}")

    def register(self, subject: str, schema: NewSchema) -> SubjectVersion:
        """Add a version, unless the subject has the schema. Returns the version that has it."""
        path = f"subjects/{in_path(subject)}"
        self._client.request("POST", f"{path}/versions", schema.body())
        found = self._client.request("POST", path, schema.body())
        return _version_of(found, path)

    def incompatibilities(self, subject: str, schema: NewSchema) -> list[str]:
        """The reasons for which a schema would be refused; none if it would be accepted."""
        path = f"compatibility/subjects/{in_path(subject)}/versions?verbose=true"
        answer = self._client.request("POST", path, schema.body())
        if not isinstance(answer, dict) or not isinstance(answer.get("is_compatible"), bool):
            raise _not_understood(path)
        messages = [str(each) for each in answer.get("messages") or ()]
        return [] if answer["is_compatible"] else messages or ["the registry gives no reason"]

    def delete(self, subject: str, version: str | None, *, permanent: bool) -> list[int]:
        """Soft-delete a version, or all; `permanent` removes those that are soft-deleted. Returns
        the versions."""
        part = "" if version is None else f"/versions/{in_path(version)}"
        path = f"subjects/{in_path(subject)}{part}{'?permanent=true' if permanent else ''}"
        answer = self._client.request("DELETE", path)
        return _list_of(answer if version is None else [answer], int, path)

    def level(self, subject: str) -> str:
        """The compatibility level that counts for a subject."""
        path = f"config/{in_path(subject)}?defaultToGlobal=true"
        answer = self._client.request("GET", path)
        level = answer.get("compatibilityLevel") if isinstance(answer, dict) else None
        if not isinstance(level, str):
            raise _not_understood(path)
        return level

    def set_level(self, subject: str | None, level: Level) -> None:
        """Set the compatibility level of a subject, or of all without one."""
        path = "config" if subject is None else f"config/{in_path(subject)}"
        self._client.request("PUT", path, {"compatibility": level})

    def _list(self, path: str, kind: type[T]) -> list[T]:
        return _list_of(self._client.request("GET", path), kind, path)

    def _version(self, path: str) -> SubjectVersion:
        return _version_of(self._client.request("GET", path), path)


def _deleted(deleted: bool) -> str:
    return "?deleted=true" if deleted else ""


def _version_of(answer: Any, path: str) -> SubjectVersion:
    try:
        return SubjectVersion(
            str(answer["subject"]),
            int(answer["version"]),
            int(answer["id"]),
            str(answer.get("schemaType", SchemaType.AVRO)),
            str(answer["schema"]),
            answer,
        )
    except (KeyError, TypeError, ValueError):
        raise _not_understood(path) from None


def _list_of(answer: Any, kind: type[T], path: str) -> list[T]:
    if not isinstance(answer, list) or not all(isinstance(each, kind) for each in answer):
        raise _not_understood(path)
    return answer


def _not_understood(path: str) -> RegistryError:
    return RegistryError(f"/{path}: the answer is not of a schema registry")
