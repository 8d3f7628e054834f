"""Found by Spark: every `pyspark_*` module with a `DefaultSource` is registered at first use."""

from __future__ import annotations

from kafkapy.spark.source.datasource import KafkapyDataSource as DefaultSource

__all__ = ["DefaultSource"]
