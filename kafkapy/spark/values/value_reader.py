"""Decodes the values of a batch: the schema's id, as Confluent's serializers write it, and the rest
by schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import pyarrow as pa

from kafkapy.common.errors import KafkapyError
from kafkapy.schemas.registry_client import NotRegistered
from kafkapy.schemas.wire_format import SCHEMA_ID_HEADERS, CorruptValue, SchemaId, split_id

_BEGINNING_BYTES: Final = 16  # shown of a corrupt value
_ARROW_FAULTS: Final = (pa.ArrowException, OverflowError, TypeError, ValueError)


class ValueFault(KafkapyError):
    """A value cannot be decoded; the message has its place and the reason."""


class ValueReader(Protocol):
    """Decodes the values, or keys, of one type of schemas to the same type of Arrow."""

    @property
    def arrow_type(self) -> pa.DataType:
        """The type that pyarrow makes of the values. Its timestamps may have another unit than
        Spark's."""

    def read(self, schema_id: SchemaId, payload: bytes) -> Any:
        """One value; that of a record has the fields by name.

        Raises:
            CorruptValue: the payload does not fit the schema with the id, or this one the type.
            NotRegistered: the registry has no such schema.
            RegistryError: no registry answers.
        """


def decode(
    reader: ValueReader,
    decoded: pa.StructType,
    values: Sequence[bytes | None],
    headers: Sequence[bytes | None] | None,
    places: Sequence[Sequence[Any]],
) -> pa.StructArray:
    """Decode the values of a batch. A null gives null.

    Args:
        decoded: the field of the values, which is `key` or `value`, with Spark's type; and possibly
            that of corrupt values, which are null in the first.
        headers: the contents of the records' headers with the schema's id; None if they were not
            read.
        places: topics, partitions and offsets, for the message of a fault; or nothing.

    Raises:
        ValueFault: a value is corrupt, and `decoded` has no field for it.
        RegistryError: no registry answers.
    """
    field, *corrupt_fields = decoded
    faults: dict[int, str] = {}
    rows = _read_rows(reader, field.name, values, headers, faults)
    try:
        found = _array(rows, reader.arrow_type, field.type)
    except _ARROW_FAULTS:
        # Some number is out of its type's range. Only one row at a time tells which.
        for i, row in enumerate(rows):
            try:
                _array([row], reader.arrow_type, field.type)
            except _ARROW_FAULTS as error:
                rows[i] = None
                faults[i] = " ".join(str(error).split())
        found = _array(rows, reader.arrow_type, field.type)
    if faults and not corrupt_fields:
        i = min(faults)
        place = [each[i] for each in places]
        raise ValueFault(_describe(field.name, values[i], place, faults[i]))
    corrupt = [values[i] if i in faults else None for i in range(len(values))]
    arrays = [found, *(pa.array(corrupt, each.type) for each in corrupt_fields)]
    return pa.StructArray.from_arrays(arrays, fields=list(decoded))


def _read_rows(
    reader: ValueReader,
    name: str,
    values: Sequence[bytes | None],
    headers: Sequence[bytes | None] | None,
    faults: dict[int, str],
) -> list[Any]:
    """The rows of values. A corrupt value has the row None, and a reason in `faults`."""
    rows: list[Any] = []
    missing: dict[SchemaId, str] = {}  # asked for once in a batch
    for i, value in enumerate(values):
        row = None
        if value is not None:
            try:
                found = split_id(value, headers[i] if headers else None)
                if found is None:
                    raise CorruptValue(_without_id(name, i, headers))
                row = _read_row(reader, *found, missing)
            except CorruptValue as error:
                faults[i] = str(error)
        rows.append(row)
    return rows


def _without_id(name: str, i: int, headers: Sequence[bytes | None] | None) -> str:
    if headers and headers[i] is not None:
        return f"the record's header {SCHEMA_ID_HEADERS[name]} has no schema's id"
    reason = "it does not begin with a zero byte and a schema's id of four bytes"
    if headers is None:
        reason += ", and the column headers, which may have the id, was not read"
    return reason


def _read_row(
    reader: ValueReader, schema_id: SchemaId, payload: bytes, missing: dict[SchemaId, str]
) -> Any:
    if schema_id in missing:
        raise CorruptValue(missing[schema_id])
    try:
        return reader.read(schema_id, payload)
    except NotRegistered as error:
        missing[schema_id] = str(error)
        raise CorruptValue(str(error)) from error


def _array(rows: list[Any], read_type: pa.DataType, spark_type: pa.DataType) -> pa.Array:
    found = pa.array(rows, read_type)
    return found if found.type == spark_type else found.cast(spark_type)


def _describe(name: str, value: bytes | None, place: list[Any], reason: str) -> str:
    beginning = (value or b"")[:_BEGINNING_BYTES].hex(" ")
    where = " of {}-{} at offset {}".format(*place) if place else ""
    return f"The {name}{where} cannot be decoded: {reason}. Its first bytes are {beginning}"
