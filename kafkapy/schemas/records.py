"""The records of the topic `_schemas`, as Confluent Schema Registry writes and reads them.

Keys and values are JSON. A key names its type; the latest record of a key counts, so that the topic
can be compacted.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

import orjson

from kafkapy.schemas.contract import Contract, read_contract

NUMBER_MAX: Final = 2**31 - 1
"""The highest version and the highest id."""


class SchemaType(StrEnum):
    """The format of a schema. Avro is the default, and is not named in records and responses."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


class Level(StrEnum):
    """The earlier versions that a new schema must be compatible with, and the direction."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_transitive(self) -> bool:
        return self.endswith("_TRANSITIVE")

    @property
    def reads_earlier(self) -> bool:
        """Whether the new schema must read data of earlier versions."""
        return self.startswith(("BACKWARD", "FULL"))

    @property
    def is_read_by_earlier(self) -> bool:
        """Whether earlier versions must read data of the new schema."""
        return self.startswith(("FORWARD", "FULL"))


class Mode(StrEnum):
    """The accepted changes. IMPORT takes ids and versions from the request."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    IMPORT = "IMPORT"


class Reference(NamedTuple):
    """A version of a subject, and the name by which a schema refers to it."""

    name: str
    subject: str
    version: int


class StoredSchema(NamedTuple):
    """A schema as it is stored. Those with equal `content` have the same id."""

    schema_type: SchemaType
    text: str
    references: tuple[Reference, ...] = ()
    contract: Contract = Contract()

    @property
    def content(self) -> StoredSchema:
        return self._replace(contract=self.contract.content)

    @property
    def guid(self) -> str:
        """The GUID: Confluent's MD5 of the content, with the encodings of Java. All registries
        compute the same one from the same text."""
        content = bytearray(self.text.encode(errors="replace"))
        for name, subject, version in self.references:
            content += (name + subject).encode(errors="replace")
            content += (version & 0xFFFFFFFF).to_bytes(4, "big")
        content += "".join(self.contract.texts()).encode(errors="replace")
        return str(uuid.UUID(bytes=hashlib.md5(content, usedforsecurity=False).digest()))

    def fields(self) -> dict[str, Any]:
        """Its fields in records and responses."""
        found: dict[str, Any] = {}
        if self.schema_type is not SchemaType.AVRO:
            found["schemaType"] = self.schema_type.value
        if self.references:
            found["references"] = [each._asdict() for each in self.references]
        return found | self.contract.fields() | {"schema": self.text}


class Version(NamedTuple):
    """A version of a subject."""

    subject: str
    version: int
    schema_id: int
    schema: StoredSchema
    is_deleted: bool = False


class Config(NamedTuple):
    """The settings of a subject, or of all. `fields` is the JSON of their record, also with fields
    of Confluent's registry that have no effect here. None is not set."""

    fields: Mapping[str, Any]
    level: Level | None
    group: str | None
    alias: str | None
    normalize: bool
    defaults: Contract
    overrides: Contract


class Record(NamedTuple):
    """A record of the topic. A `value` of None removes the key's previous one."""

    key: bytes
    value: bytes | None


_MAGIC: Final = {"SCHEMA": 1}


def schema_record(version: Version) -> Record:
    found = {"subject": version.subject, "version": version.version, "id": version.schema_id}
    value = found | version.schema.fields() | {"deleted": version.is_deleted}
    return Record(_schema_key(version.subject, version.version), _json(value))


def no_schema_record(subject: str, version: int) -> Record:
    return Record(_schema_key(subject, version), None)


def config_record(subject: str | None, config: Config | None) -> Record:
    return Record(_key("CONFIG", subject=subject), config and _json(config.fields))


def mode_record(subject: str | None, mode: Mode | None) -> Record:
    value = None if mode is None else _json({"mode": mode.value})
    return Record(_key("MODE", subject=subject), value)


def subject_deleted_record(subject: str, last_version: int) -> Record:
    value = _json({"subject": subject, "version": last_version})
    return Record(_key("DELETE_SUBJECT", subject=subject), value)


def read_version(value: bytes) -> Version:
    """
    Raises:
        ValueError: a field is missing, or of another type.
    """
    fields = fields_of(value)
    try:
        return Version(
            str(fields["subject"]),
            number_of(fields["version"]),
            number_of(fields["id"]),
            StoredSchema(
                SchemaType(fields.get("schemaType") or "AVRO"),
                str(fields["schema"]),
                read_references(fields.get("references")),
                read_contract(fields.get("metadata"), fields.get("ruleSet")),
            ),
            bool(fields.get("deleted")),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"a schema's record lacks {error}") from error


def read_references(given: Any) -> tuple[Reference, ...]:
    """
    Raises:
        ValueError: not a list of objects with name, subject and version.
    """
    try:
        return tuple(
            Reference(str(each["name"]), str(each["subject"]), int(each["version"]))
            for each in given or ()
        )
    except (KeyError, TypeError) as error:
        raise ValueError("a reference has a name, a subject and a version") from error


def read_config(given: Mapping[str, Any]) -> Config:
    """Settings with these fields, of which None is not set.

    Raises:
        ValueError: a field has another type.
    """
    fields = {name: each for name, each in given.items() if each is not None}
    level = fields.get("compatibilityLevel")
    for name in ("compatibilityGroup", "alias"):
        if not isinstance(fields.get(name), str | None):
            raise ValueError(f"{name}: expected a text")
    if not isinstance(fields.get("normalize"), bool | None):
        raise ValueError("normalize: expected true or false")
    return Config(
        fields,
        None if level is None else Level(level),
        fields.get("compatibilityGroup"),
        fields.get("alias"),
        bool(fields.get("normalize")),
        read_contract(fields.get("defaultMetadata"), fields.get("defaultRuleSet")),
        read_contract(fields.get("overrideMetadata"), fields.get("overrideRuleSet")),
    )


def fields_of(data: bytes) -> Mapping[str, Any]:
    """The fields of a key or a value.

    Raises:
        ValueError: it is not JSON of an object. Infinite numbers, lone surrogates and deep nesting,
            which `json` accepts or answers with other errors, are not JSON either.
    """
    found = orjson.loads(data)
    if not isinstance(found, dict):
        raise ValueError("it is not JSON of an object")
    return found


def number_of(given: Any) -> int:
    """A version or an id.

    Raises:
        TypeError, ValueError: not a number of 31 bits.
    """
    found = int(given)
    if not 0 <= found <= NUMBER_MAX:
        raise ValueError(f"{given} is not a number up to {NUMBER_MAX}")
    return found


def _schema_key(subject: str, version: int) -> bytes:
    return _key("SCHEMA", subject=subject, version=version)


def _key(keytype: str, **fields: Any) -> bytes:
    return _json({"keytype": keytype, **fields, "magic": _MAGIC.get(keytype, 0)})


def _json(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
