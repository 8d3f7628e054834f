"""Topics as Spark tables: the Python data source, and the API for scripts.

May import `schemas`, `client`, `record`, `common`. Start with `source.datasource`; `workers.engine`
reads the records.
"""

from __future__ import annotations

from kafkapy.spark.submit.session import (
    decode_keys,
    decode_values,
    encode_keys,
    encode_values,
    read,
    read_stream,
    register,
    write,
    write_stream,
)
from kafkapy.spark.workers.local_workers import prepare_local_workers

__all__ = [
    "decode_keys",
    "decode_values",
    "encode_keys",
    "encode_values",
    "prepare_local_workers",
    "read",
    "read_stream",
    "register",
    "write",
    "write_stream",
]
