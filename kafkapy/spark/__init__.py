"""Topics as Spark tables: the Python data source, and what scripts call.

May import `client`, `record`, `common`. Start with `datasource`; `engine` is where the data flows.
"""

from __future__ import annotations

from kafkapy.spark.local_workers import prepare_local_workers
from kafkapy.spark.session import read, read_stream, register, write, write_stream

__all__ = ["prepare_local_workers", "read", "read_stream", "register", "write", "write_stream"]
