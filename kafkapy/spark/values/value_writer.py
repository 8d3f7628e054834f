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
    try:
        rows = values.to_pylist(maps_as_pydicts="strict")
    except OverflowError as error:
        fault = "a date or a time is outside of the years 1 to 9999 in UTC or the session's zone"
        raise _row_fault(writer, fault) from error
    try:
        found = [None if row is None else beginning + writer.write(row) for row in rows]
    except CorruptValue as error:
        raise _row_fault(writer, str(error)) from error
    return pa.array(found, pa.binary())


def _row_fault(writer: ValueWriter, fault: str) -> RowFault:
    return RowFault(f"A row cannot be written by the schema {writer.schema_id}: {fault}")
