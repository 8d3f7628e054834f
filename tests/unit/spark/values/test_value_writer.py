"""value_writer: a batch of rows to values with the header of Confluent's serializers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kafkapy.schemas.wire_format import CorruptValue
from kafkapy.spark.values.value_writer import RowFault, encode


class Writer:
    schema_id = 0x01020304
    required = frozenset[str]()
    arrow_type = pa.struct([("n", pa.map_(pa.string(), pa.int32()))])

    def write(self, row: dict[str, Any]) -> bytes:
        if not row["n"]:
            raise CorruptValue("n is empty")
        return bytes(row["n"].values())


def test_rows() -> None:
    rows = pa.array([{"n": {"a": 7}}, None, {"n": {"a": 8, "b": 9}}], Writer.arrow_type)
    assert encode(Writer(), rows).to_pylist() == [
        b"\0\1\2\3\4\7",
        None,
        b"\0\1\2\3\4\x08\x09",
    ]
    with pytest.raises(RowFault, match="cannot be written by the schema 16909060: n is empty"):
        encode(Writer(), pa.array([{"n": {}}], Writer.arrow_type))


@pytest.mark.parametrize(
    "value",
    [
        pa.array([2_932_897], pa.date32()),
        pa.array([253_402_300_799_000_000], pa.timestamp("us", "Asia/Tokyo")),
    ],
)
def test_times_that_python_does_not_have(value: pa.Array) -> None:
    with pytest.raises(RowFault, match="schema 16909060: a date or a time is outside of the years"):
        encode(Writer(), pa.StructArray.from_arrays([value], ["n"]))
