"""Names of files and directories."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.storage.log_names import (
    IllegalTopicDirectory,
    check_is_child,
    delete_dir_name,
    future_dir_name,
    offset_file_name,
    parse_log_dir_name,
    parse_offset_file_name,
    partition_dir_name,
)

HEX = "0123456789abcdef0123456789abcdef"


def test_offset_files() -> None:
    assert offset_file_name(42, ".log") == "00000000000000000042.log"
    assert parse_offset_file_name("00000000000000000042.timeindex") == (42, ".timeindex", "")
    assert parse_offset_file_name("00000000000000000042.log.swap") == (42, ".log", ".swap")
    assert parse_offset_file_name("9223372036854775807.snapshot") == (2**63 - 1, ".snapshot", "")
    for other in ("leader-epoch-checkpoint", "partition.metadata", "x.log", "1.log.tmp"):
        assert parse_offset_file_name(other) is None


@pytest.mark.parametrize(
    ("name", "topic", "partition", "state"),
    [
        ("orders-0", "orders", 0, ""),
        ("my-topic.v-2-17", "my-topic.v-2", 17, ""),
        (f"orders-3.{HEX}-delete", "orders", 3, "-delete"),
        (f"a-b-3.{HEX}-future", "a-b", 3, "-future"),
        (f"orders-3.{HEX}-stray", "orders", 3, "-stray"),
    ],
)
def test_partition_directories(name: str, topic: str, partition: int, state: str) -> None:
    assert parse_log_dir_name("/d", name) == (TopicPartition(topic, partition), state)


@pytest.mark.parametrize("name", ["lost+found", "orders", "orders-", "-0", "orders-x", "x-delete"])
def test_foreign_directories_are_named(name: str) -> None:
    with pytest.raises(ConfigError, match=r"/data/logs/") as caught:
        parse_log_dir_name("/data/logs", name)
    assert name in str(caught.value)


def test_delete_names_fit_the_file_system() -> None:
    assert delete_dir_name(TopicPartition("orders", 3), HEX) == f"orders-3.{HEX}-delete"
    long = delete_dir_name(TopicPartition("t" * 249, 12), HEX)
    assert len(long) == 255
    assert long.endswith(f"t-12.{HEX}-delete")
    assert parse_log_dir_name("/d", long)[1] == "-delete"


@pytest.mark.parametrize(
    "name", ["a b-0", "a\nb-0", f"a\nb-0.{HEX}-delete", "..-0", f"a b-0.{HEX}-future", "é-0"]
)
def test_directories_of_illegal_topics_are_told_from_foreign_ones(name: str) -> None:
    with pytest.raises(IllegalTopicDirectory):
        parse_log_dir_name("/d", name)


@pytest.mark.parametrize(
    "partition",
    [
        TopicPartition("../x", 0),
        TopicPartition("a\nb", 0),
        TopicPartition("", 0),
        TopicPartition("t", -1),
        TopicPartition("x" * 249, 100_000),
    ],
)
def test_no_directory_is_named_for_an_illegal_partition(partition: TopicPartition) -> None:
    for name in (
        partition_dir_name,
        lambda p: delete_dir_name(p, HEX),
        lambda p: future_dir_name(p, HEX),
    ):
        if len(partition.topic) == 249 and name is not partition_dir_name:
            assert len(name(partition)) == 255, "these are shortened"
            continue
        with pytest.raises(ApiError) as refused:
            name(partition)
        assert refused.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("path", ["/d/../x-0", "/x-0", "/d/a/b-0", "/d", "/d/", "/d/.", "/d/.."])
def test_only_a_direct_child_is_in_a_log_directory(path: str) -> None:
    check_is_child("/d", "/d/t-0")
    with pytest.raises(ApiError, match="is not directly in the log directory /d"):
        check_is_child("/d", path)
