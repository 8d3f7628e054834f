"""Decodes Avro values, which may be of other versions of the schema than the columns."""

from __future__ import annotations

import json
import struct
from functools import partial
from io import BytesIO
from typing import Any, Final

import fastavro
from fastavro.read import SchemaResolutionError
from fastavro.schema import SchemaParseException, UnknownType

from kafkapy.common.errors import ConfigError
from kafkapy.schemas.parsed_schema import TOO_DEEP
from kafkapy.schemas.records import SchemaType
from kafkapy.schemas.registry_client import RegisteredSchema, RegistryClient
from kafkapy.schemas.wire_format import CorruptValue, SchemaId
from kafkapy.spark.values.avro_types import RECORD_NAME, AvroType, AvroTypes

_WITH_TYPES: Final = ("type", "fields", "items", "values")

# The exceptions of fastavro for bytes that are not of the schema.
_MALFORMED: Final = (
    *(EOFError, LookupError, ArithmeticError, TypeError, ValueError, StopIteration),
    *(struct.error, SchemaResolutionError),
)


class AvroReader:
    """Reads values of any version of a subject as rows of one version, by Avro's schema resolution.

    Timestamps stay numbers, so that pyarrow converts a whole column at once.
    """

    def __init__(self, schema: RegisteredSchema, registry: RegistryClient) -> None:
        """
        Raises:
            ConfigError: the schema is not Avro's, or has a type that no column can have.
        """
        self._registry: Final = registry
        parsed, types, found = _parse(schema)
        self.arrow_type: Final = found.arrow
        self._convert: Final = found.convert
        self._schema: Final = _for_reading(parsed, types, types.has_unions_of_records)
        self._writers: Final[dict[SchemaId, Any]] = {
            schema.schema_id: _for_reading(parsed, types, False)
        }

    def read(self, schema_id: SchemaId, payload: bytes) -> Any:
        writer = self._writers.get(schema_id)
        if writer is None:
            writer = self._writers[schema_id] = self._writer_of(schema_id)
        try:
            value = fastavro.schemaless_reader(BytesIO(payload), writer, self._schema)
            if self._convert is not None:
                return self._convert(value)
        except _MALFORMED as error:
            reason = str(error) or type(error).__name__
            raise CorruptValue(f"it is not of the schema {schema_id}: {reason}") from error
        return value

    def _writer_of(self, schema_id: SchemaId) -> Any:
        schema = self._registry.of_id(schema_id)
        if schema.schema_type is not SchemaType.AVRO:
            raise CorruptValue(f"its schema {schema_id} is not Avro's but {schema.schema_type}'s")
        try:
            parsed, types, _ = _parse(schema)
        except ConfigError as error:
            raise CorruptValue(str(error)) from error
        return _for_reading(parsed, types, False)


class AvroWriter:
    """Writes rows by one schema."""

    def __init__(self, schema: RegisteredSchema) -> None:
        """
        Raises:
            ConfigError: the schema is not Avro's, or has a type that no column can have.
        """
        self.schema_id: Final = schema.schema_id
        parsed, types, found = _parse(schema)
        self._schema: Final = _parse_document(_plain(parsed, types, keeps_logical_types=True), {})
        self.arrow_type: Final = found.arrow
        self._restore: Final = found.restore
        fields = self._schema.get("fields", ()) if isinstance(self._schema, dict) else ()
        self.required: Final = frozenset(
            each["name"]
            for each in fields
            if "default" not in each and not _is_nullable(each["type"])
        )

    def write(self, value: Any) -> bytes:
        output = BytesIO()
        try:
            value = value if self._restore is None else self._restore(value)
            fastavro.schemaless_writer(output, self._schema, value)
        except (LookupError, ArithmeticError, TypeError, ValueError, AttributeError) as error:
            raise CorruptValue(str(error) or type(error).__name__) from error
        return output.getvalue()


def _is_nullable(schema: Any) -> bool:
    return schema == "null" or (isinstance(schema, list) and "null" in schema)


def _parse(schema: RegisteredSchema) -> tuple[Any, AvroTypes, AvroType]:
    """Refuses schemas whose values could be nested without end, or long without bytes."""
    names: dict[str, Any] = {}
    try:
        parsed = _parse_document(_document(schema), names)
        types = AvroTypes(names)
        return parsed, types, types.of(parsed)
    except (SchemaParseException, UnknownType, LookupError, TypeError, ValueError) as error:
        reason = str(error) or type(error).__name__
        raise ConfigError(f"schema {schema.schema_id} is not Avro: {reason}") from error
    except RecursionError as error:
        raise ConfigError(f"schema {schema.schema_id}: {TOO_DEEP}") from error


def _parse_document(document: Any, names: dict[str, Any]) -> Any:
    # Old schemas have defaults of other types than their fields.
    return fastavro.parse_schema(document, named_schemas=names, _ignore_default_error=True)


def _document(schema: RegisteredSchema) -> Any:
    """The schema as JSON, with the definitions of the types that it refers to."""
    if not schema.references:
        return json.loads(schema.text)
    from kafkapy.schemas.avro_schema import parse_avro_schema

    return parse_avro_schema(schema.text, dict(schema.references)).document


def _for_reading(parsed: Any, types: AvroTypes, names_records: bool) -> Any:
    """A schema without the conversions of fastavro, except for decimals."""
    return _parse_document(_plain(parsed, types, names_records=names_records), {})


def _plain(
    schema: Any, types: AvroTypes, *, names_records: bool = False, keeps_logical_types: bool = False
) -> Any:
    """The schema with defaults of the types that fastavro reads and writes."""

    plain = partial(
        _plain, types=types, names_records=names_records, keeps_logical_types=keeps_logical_types
    )
    if isinstance(schema, list):
        return [plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {
        key: plain(value) if key in _WITH_TYPES else value
        for key, value in schema.items()
        if not key.startswith("__")
        and (key != "logicalType" or value == "decimal" or keeps_logical_types)
    }
    if "default" in found and "type" in found and "symbols" not in found:
        found["default"] = types.default(found["default"], schema["type"])
    if names_records and "fields" in found:
        found["fields"].append({"name": RECORD_NAME, "type": "string", "default": found["name"]})
    return found
