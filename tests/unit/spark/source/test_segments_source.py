"""segments_source: options, the plan, and what a task reads, without Spark."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from pyspark.sql.datasource import EqualTo, GreaterThan, InputPartition
from pyspark.sql.types import StructType

from kafkapy.common.errors import ApiError, ConfigError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.spark.source.segments_source import (
    FilteringSegmentsReader,
    KafkapySegmentsSource,
    SegmentsReader,
    parse_segments_options,
)
from kafkapy.spark.source.source_columns import schema_of
from pyspark_kafkapy_segments import DefaultSource
from tests.harness.storage.log_builder import LogBuilder


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "Name the log directories"),
        ({"path": " , "}, "Name the log directories"),
        ({"path": "/x", "subscribe_pattern": "a"}, "Did you mean 'subscribePattern'"),
        ({"path": "/x", "zzz": "a"}, "Unknown option 'zzz' for the kafkapy-segments source."),
        ({"path": "/x", "allReplicas": "yes"}, "Invalid value 'yes' for option 'allReplicas'"),
        ({"path": "/x", "subscribePattern": "("}, "subscribePattern is not a regular expression"),
        ({"path": "/x", "subscribePattern": "a{99999999999}"}, "is not a regular expression"),
    ],
)
def test_what_is_wrong_is_named(options: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_segments_options(options)
    assert words in str(caught.value)


def test_paths_may_be_uris() -> None:
    given = "/a, file:/b c, file:///d%20e/f, FILE:///g, file://host/h, file:i"
    assert parse_segments_options({"path": given}).paths == (
        *("/a", "/b c", "/d%20e/f", "/g", "file://host/h", "file:i"),
    )


def test_spark_finds_it_by_its_name() -> None:
    assert DefaultSource is KafkapySegmentsSource
    assert DefaultSource.name() == "kafkapy-segments"
    with_headers = DefaultSource({"path": "/x", "includeHeaders": "true"})
    assert with_headers.schema().names[-1] == "headers"


def test_a_schema_chooses_columns(root: Path) -> None:
    reader = DefaultSource({"path": str(root)}).reader(schema_of(["offset", "topic"]))
    batches = [batch for partition in reader.partitions() for batch in reader.read(partition)]
    assert {tuple(batch.schema.names) for batch in batches} == {("offset", "topic")}
    assert sum(batch.num_rows for batch in batches) == 12
    with pytest.raises(ConfigError, match="column 'offset' is bigint, not string"):
        DefaultSource({"path": str(root)}).reader(StructType().add("offset", "string"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for topic in ("a", "b"):
        builder = LogBuilder(tmp_path, topic_partition=TopicPartition(topic, 0))
        builder.append(count=3).roll().append(count=3).stop()
    return tmp_path


def rows(reader: SegmentsReader) -> list[tuple[str, int]]:
    """Topic and offset of what the pickled reader's tasks give."""
    copy = pickle.loads(pickle.dumps(reader))
    return [
        (topic, offset)
        for partition in reader.partitions()
        for batch in copy.read(partition)
        for topic, offset in zip(
            batch.column("topic").to_pylist(), batch.column("offset").to_pylist(), strict=True
        )
    ]


def test_topics_are_chosen(root: Path) -> None:
    def read(**options: str) -> list[tuple[str, int]]:
        return rows(SegmentsReader(parse_segments_options({"path": str(root), **options})))

    assert read() == [(topic, i) for topic in "ab" for i in range(6)]
    assert read(subscribe="b") == read(subscribePattern="[b-z]") == [("b", i) for i in range(6)]
    assert read(subscribe="nothing") == []
    assert list(SegmentsReader(parse_segments_options({"path": "/"})).read(InputPartition(0))) == []


def test_a_corrupt_replica_does_not_hide_a_whole_one(tmp_path: Path) -> None:
    for name in "ab":
        LogBuilder(tmp_path / name).append(count=2).stop()
    (damaged,) = (tmp_path / "a").glob("*/*.log")
    damaged.write_bytes(bytes(damaged.stat().st_size))
    options = {"path": f"{tmp_path / 'a'},{tmp_path / 'b'}"}
    with pytest.raises(ApiError, match=str(damaged)):
        SegmentsReader(parse_segments_options(options)).partitions()
    options["failOnDataLoss"] = "false"
    assert len(rows(SegmentsReader(parse_segments_options(options)))) == 2


def test_filters_choose_files(root: Path) -> None:
    reader = FilteringSegmentsReader(parse_segments_options({"path": str(root)}))
    assert reader.pushFilters([EqualTo(("topic",), "a"), GreaterThan(("offset",), 4)]) == []
    assert len(reader.partitions()) == 1
    assert rows(reader) == [("a", 5)]
