"""Parses the schemas of each type, with the schemas that they refer to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from typing import Final

from kafkapy.schemas.parsed_schema import InvalidSchema, ParsedSchema
from kafkapy.schemas.records import Reference, SchemaType, StoredSchema
from kafkapy.schemas.references import texts_of
from kafkapy.schemas.registry_state import RegistryState

Parser = Callable[[str, Mapping[str, str]], ParsedSchema]

# Imported when the first schema of the type is parsed: their libraries take long.
_PARSERS: Final = {
    SchemaType.JSON: ("kafkapy.schemas.json_schema", "parse_json_schema"),
    SchemaType.PROTOBUF: ("kafkapy.schemas.protobuf_schema", "parse_protobuf_schema"),
    SchemaType.AVRO: ("kafkapy.schemas.avro_schema", "parse_avro_schema"),
}
TYPES: Final = tuple(_PARSERS)


def parse(state: RegistryState, schema: StoredSchema) -> ParsedSchema:
    """Parse a schema, with those that it refers to.

    Raises:
        InvalidSchema: the text is not a schema of its type, or a reference does not exist.
    """
    return parse_text(schema.schema_type, schema.text, tuple(_references(state, schema).items()))


def prepare(state: RegistryState, schemas: Iterable[StoredSchema]) -> None:
    """Prepare to parse many schemas: those that must be compiled are compiled at once."""
    sources = list[tuple[str, Mapping[str, str]]]()
    for each in schemas:
        if each.schema_type is SchemaType.PROTOBUF:
            with suppress(InvalidSchema):
                sources.append((each.text, _references(state, each)))
    if sources:
        from kafkapy.schemas.protobuf_schema import prepare_protobuf_schemas

        prepare_protobuf_schemas(sources)


def _references(state: RegistryState, schema: StoredSchema) -> dict[str, str]:
    """The texts of all schemas that a schema refers to, as for `parse_text`.

    Raises:
        InvalidSchema: one does not exist, or they are nested too deeply.
    """

    def find(reference: Reference) -> tuple[str, Iterable[Reference]]:
        _, subject, version = reference
        known = state.subjects.get(subject, {}).get(version)
        if known is None:
            raise InvalidSchema(
                f"No schema reference found for subject {subject!r} and version {version}"
            )
        return known.schema.text, known.schema.references

    return texts_of(schema.references, find)


@lru_cache(100)
def parse_text(
    schema_type: SchemaType, text: str, references: tuple[tuple[str, str], ...]
) -> ParsedSchema:
    """Parse a schema. `references` are the names and texts of those that it refers to, each after
    those that it refers to itself.

    Raises:
        InvalidSchema: the text is not a schema of its type.
    """
    module, name = _PARSERS[schema_type]
    parser: Parser = getattr(import_module(module), name)
    return parser(text, dict(references))
