"""value_schema: the types of Spark for those of pyarrow."""

from __future__ import annotations

import pyarrow as pa

from kafkapy.spark.values.value_schema import spark_type


def test_types() -> None:
    point = pa.struct([("x", pa.int32())])
    arrow = pa.struct(
        [
            ("points", pa.list_(point)),
            ("by", pa.map_(pa.int64(), point)),
            ("at", pa.timestamp("ms", "UTC")),
            ("local", pa.timestamp("us")),
            ("day", pa.date32()),
            ("time", pa.time64("us")),
            ("took", pa.duration("us")),
            ("price", pa.decimal128(9, 2)),
            ("raw", pa.binary()),
        ]
    )
    assert spark_type(arrow).simpleString() == (
        "struct<points:array<struct<x:int>>,by:map<bigint,struct<x:int>>,at:timestamp,"
        "local:timestamp_ntz,day:date,time:time(6),took:interval day to second,"
        "price:decimal(9,2),raw:binary>"
    )
