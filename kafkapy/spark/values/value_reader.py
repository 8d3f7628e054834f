"""Decodes the values of a batch: the header of Confluent's serializers, and the rest by schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import pyarrow as pa

from kafkapy.common.errors import KafkapyError
from kafkapy.schemas.registry_client import NotRegistered
from kafkapy.schemas.wire_format import CorruptValue, split_header
from kafkapy.spark.source.shaping import CORRUPT_RECORD

_BEGINNING_BYTES: Final = 16  # shown of a corrupt value
_ARROW_FAULTS: Final = (pa.ArrowException, OverflowError, TypeError, ValueError)


class ValueFault(KafkapyError):
    """A value cannot be decoded; the message has its place and the reason."""


class ValueReader(Protocol):
    """Decodes the values of one type of schemas to rows of the same columns."""

    @property
    def arrow_type(self) -> pa.StructType:
        """The columns that pyarrow makes of the rows. Its timestamps may have another unit than
        Spark's."""

    def read(self, schema_id: int, payload: bytes) -> Any:
        """One row: the fields by name.

        Raises:
            CorruptValue: the payload does not fit the schema with the id, or this one the columns.
            NotRegistered: the registry has no such schema.
            RegistryError: no registry answers.
        """


def decode(
    reader: ValueReader,
    spark_type: pa.StructType,
    values: Sequence[bytes | None],
    places: Sequence[Sequence[Any]],
    *,
    keeps_corrupt: bool,
) -> pa.StructArray:
    """Decode the values of a batch to rows of `spark_type`, which has the columns of the reader,
    and `CORRUPT_RECORD` if `keeps_corrupt`. A null gives nulls.

    Args:
        places: topics, partitions and offsets, for the message of a fault; or nothing.

    Raises:
        ValueFault: a value is corrupt, unless `keeps_corrupt`.
        RegistryError: no registry answers.
    """
    fields = pa.struct([each for each in spark_type if each.name != CORRUPT_RECORD])
    faults: dict[int, str] = {}
    rows = _read_rows(reader, values, faults)
    try:
        found = _array(rows, reader.arrow_type, fields)
    except _ARROW_FAULTS:
        # Some number is out of its type's range. Only one row at a time tells which.
        for i, row in enumerate(rows):
            try:
                _array([row], reader.arrow_type, fields)
            except _ARROW_FAULTS as error:
                rows[i] = None
                faults[i] = " ".join(str(error).split())
        found = _array(rows, reader.arrow_type, fields)
    if not keeps_corrupt:
        if faults:
            i = min(faults)
            raise ValueFault(_describe(values[i], [each[i] for each in places], faults[i]))
        return found
    corrupt = pa.array(
        [values[i] if i in faults else None for i in range(len(values))], pa.binary()
    )
    return pa.StructArray.from_arrays(
        [*found.flatten(), corrupt], fields=[*fields, pa.field(CORRUPT_RECORD, pa.binary())]
    )


def _read_rows(
    reader: ValueReader, values: Sequence[bytes | None], faults: dict[int, str]
) -> list[Any]:
    """The rows of values. A corrupt value has the row None, and a reason in `faults`."""
    rows: list[Any] = []
    missing: dict[int, str] = {}  # asked for once in a batch
    for i, value in enumerate(values):
        row = None
        if value is not None:
            try:
                row = _read_row(reader, value, missing)
            except CorruptValue as error:
                faults[i] = str(error)
        rows.append(row)
    return rows


def _read_row(reader: ValueReader, value: bytes, missing: dict[int, str]) -> Any:
    found = split_header(value)
    if found is None:
        raise CorruptValue("it does not begin with a zero byte and a schema's id of four bytes")
    schema_id, payload = found
    if schema_id in missing:
        raise CorruptValue(missing[schema_id])
    try:
        return reader.read(schema_id, payload)
    except NotRegistered as error:
        missing[schema_id] = str(error)
        raise CorruptValue(str(error)) from error


def _array(rows: list[Any], read_type: pa.StructType, spark_type: pa.StructType) -> pa.StructArray:
    found = pa.array(rows, read_type)
    return found if found.type == spark_type else found.cast(spark_type)


def _describe(value: bytes | None, place: list[Any], reason: str) -> str:
    beginning = (value or b"")[:_BEGINNING_BYTES].hex(" ")
    where = " of {}-{} at offset {}".format(*place) if place else ""
    return f"The value{where} cannot be decoded: {reason}. Its first bytes are {beginning}"
