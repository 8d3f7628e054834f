"""The Spark conf of `kafkapy spark-submit`, set in a running session."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from kafkapy.spark.submit.session import (
    CHECKPOINT,
    COLUMNS,
    FROM,
    FROM_MESSAGE,
    FROM_SUBJECT,
    KEEP_CORRUPT_RECORDS,
    ONCE,
    PROPERTY,
    SCHEMA,
    SCHEMA_REGISTRY,
    SQL,
    TO,
    TO_MESSAGE,
    TO_SUBJECT,
)


class Wire:
    """Sets the Spark conf entries that `kafkapy spark-submit` sets."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._names: set[str] = set()

    def __call__(self, **conf: str | Path) -> None:
        names = {
            "source": FROM,
            "columns": COLUMNS,
            "target": TO,
            "checkpoint": CHECKPOINT,
            "sql": SQL,
            "schema": SCHEMA,
            "schema_registry": SCHEMA_REGISTRY,
            "from_subject": FROM_SUBJECT,
            "from_message": FROM_MESSAGE,
            "to_subject": TO_SUBJECT,
            "to_message": TO_MESSAGE,
            "keep_corrupt_records": KEEP_CORRUPT_RECORDS,
            "once": ONCE,
        }
        for name, value in conf.items():
            key = names.get(name, PROPERTY + "bootstrap.servers")
            self._spark.conf.set(key, str(value))
            self._names.add(key)

    def clear(self) -> None:
        for name in self._names:
            self._spark.conf.unset(name)
