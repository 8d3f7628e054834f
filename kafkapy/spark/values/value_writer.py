"""Encodes the rows of a batch: the header of Confluent's serializers, and the rest by schema."""

from __future__ import annotations

from typing import Any, Protocol

import pyarrow as pa

from kafkapy.common.errors import KafkapyError
from kafkapy.schemas.wire_format import CorruptValue, header


class RowFault(KafkapyError):
    """A row cannot be encoded; the message has the reason."""


class ValueWriter(Protocol):
    """Encodes rows by one schema."""

    @property
    def schema_id(self) -> int: ...

    @property
    def arrow_type(self) -> pa.StructType:
        """The columns, as the reader of the same schema has them."""

    @property
    def required(self) -> frozenset[str]:
        """The columns that cannot be left out."""

    def write(self, row: dict[str, Any]) -> bytes:
        """The value of a row, without the header.

        Raises:
            CorruptValue: a field has a null or a content that the schema does not allow.
        """


def encode(writer: ValueWriter, rows: pa.StructArray) -> pa.Array:
    """Encode the rows of a batch.

    Raises:
        RowFault: a row is not of the schema.
    """
    beginning = header(writer.schema_id)
    found = []
    for row in rows.to_pylist(maps_as_pydicts="strict"):
        try:
            found.append(beginning + writer.write(row))
        except CorruptValue as error:
            raise RowFault(
                f"A row cannot be written by the schema {writer.schema_id}: {error}"
            ) from error
    return pa.array(found, pa.binary())
