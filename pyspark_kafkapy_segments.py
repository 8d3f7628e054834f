"""Found by Spark: every `pyspark_*` module with a `DefaultSource` is registered at first use."""

from __future__ import annotations

from kafkapy.spark.source.segments_source import KafkapySegmentsSource as DefaultSource

__all__ = ["DefaultSource"]
