"""Assignments as consumers of several clients write them."""

import struct

import pytest

from kafkapy.admin.consumer_protocol import decode_assignment
from kafkapy.common.topic_partition import TopicPartition


def assignment(version: int, topics: dict[str, list[int]], user_data: bytes = b"") -> bytes:
    data = struct.pack(">hi", version, len(topics))
    for topic, partitions in topics.items():
        data += struct.pack(">h", len(topic)) + topic.encode()
        data += struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
    return data + struct.pack(">i", len(user_data) or -1) + user_data


@pytest.mark.parametrize("version", [0, 1, 3])
def test_every_version_is_read(version: int) -> None:
    data = assignment(version, {"b": [2, 0], "a": [1]}, b"sticky")
    expected = (TopicPartition("b", 2), TopicPartition("b", 0), TopicPartition("a", 1))
    assert decode_assignment(data) == expected


def test_a_member_without_an_assignment() -> None:
    assert decode_assignment(b"") == ()
    assert decode_assignment(assignment(0, {})) == ()


@pytest.mark.parametrize(
    "data", [b"\0", assignment(0, {"t": [1]})[:12], struct.pack(">hi", -1, 0), b"\0\0\0\0\0\1\0\5t"]
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a consumer's assignment"):
        decode_assignment(data)
