"""Encodes the values of a batch: the schema's id, as Confluent's serializers write it, and the rest
by schema."""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa

from kafkapy.common.errors import KafkapyError
from kafkapy.schemas.wire_format import CorruptValue, SchemaId, id_bytes


class RowFault(KafkapyError):
    """A row cannot be encoded; the message has the reason."""


class ValueWriter(Protocol):
    """Encodes values, or keys, by one schema."""

    @property
    def schema_id(self) -> SchemaId: ...

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of the values, as the reader of the same schema has it."""

    @property
    def required(self) -> frozenset[str]:
        """The fields that cannot be left out."""

    def write(self, value: Any) -> bytes:
        """The bytes of a value that is not null, without the schema's id.

        Raises:
            CorruptValue: a field has a null or a content that the schema does not allow.
        """


def encode(writer: ValueWriter, values: pa.Array) -> pa.Array:
    """Encode the values of a batch. A null stays null.

    Raises:
        RowFault: a value is not of the schema.
    """
    beginning = id_bytes(writer.schema_id)
    found = []
    for value in values.to_pylist(maps_as_pydicts="strict"):
        try:
            found.append(None if value is None else beginning + writer.write(value))
        except CorruptValue as error:
            raise RowFault(
                f"A row cannot be written by the schema {writer.schema_id}: {error}"
            ) from error
    return pa.array(found, pa.binary())
