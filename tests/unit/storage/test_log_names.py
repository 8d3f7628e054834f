"""Names of files and directories."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.storage.log_names import (
    delete_dir_name,
    offset_file_name,
    parse_log_dir_name,
    parse_offset_file_name,
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
