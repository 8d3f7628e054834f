"""The Spark conf of `kafkapy spark-submit`, set in a running session."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from kafkapy.spark.submit.submit import JobConf


class Wire:
    """Sets the Spark conf entries that `kafkapy spark-submit` sets."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._names: set[str] = set()

    def __call__(self, servers: str | None = None, **given: Any) -> None:
        """`given` are fields of `JobConf`."""
        properties = {} if servers is None else {"bootstrap.servers": servers}
        for name, value in JobConf(**given, properties=properties).conf().items():
            self._spark.conf.set(name, str(value))
            self._names.add(name)

    def clear(self) -> None:
        for name in self._names:
            self._spark.conf.unset(name)
