"""Subscriptions and assignments as consumers of several clients write them."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.common import consumer_protocol
from kafkapy.common.consumer_protocol import (
    BYTES_MAX,
    MemberAssignment,
    Subscription,
    encode_assignment,
    read_assignment,
    read_subscription,
    subscribed_topics,
    version_of,
)
from kafkapy.common.topic_partition import TopicPartition

V0 = bytes.fromhex("0000 00000002 0001 61 0002 6262 ffffffff")
V1 = bytes.fromhex("0001 00000001 0001 61 00000001 ff 00000001 0001 61 00000002 00000000 00000002")
V3 = bytes.fromhex("0003 00000001 0001 63 00000000 00000000 00000007 0001 72")


def assignment(version: int, topics: dict[str, list[int]], user_data: bytes = b"") -> bytes:
    data = struct.pack(">hi", version, len(topics))
    for topic, partitions in topics.items():
        data += struct.pack(">h", len(topic)) + topic.encode()
        data += struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
    return data + struct.pack(">i", len(user_data) or -1) + user_data


def test_topics_of_every_version() -> None:
    assert subscribed_topics([V0]) == {"a", "bb"}
    assert subscribed_topics([V0, V3]) == {"a", "bb", "c"}


def test_a_list_that_many_members_have_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    read = consumer_protocol._Reader.topics

    def counted(reader: consumer_protocol._Reader) -> Iterable[str]:
        for name in read(reader):
            names.append(name)
            yield name

    monkeypatch.setattr(consumer_protocol._Reader, "topics", counted)
    owned = [V0[:13] + bytes([number]) for number in range(100)]
    assert subscribed_topics([*owned, V3, V3]) == {"a", "bb", "c"}
    assert names == ["a", "bb", "c"]


def list_of(count: int, size: int) -> bytes:
    """A subscription to `count` topics, of `size` bytes until the end of their names."""
    data = struct.pack(">hi", 0, count) + bytes(2 * (count - 1))
    return data + struct.pack(">h", size - len(data) - 2) + b"n" * (size - len(data) - 2)


def test_lists_beyond_the_limit_are_unknown() -> None:
    half = BYTES_MAX // 2
    lists = [list_of(half // 2 - 100, half), list_of(half // 2 - 101, half)]
    assert subscribed_topics([lists[0] + bytes(BYTES_MAX), lists[1], lists[1]]) is not None
    assert subscribed_topics([*lists, V0]) is None
    assert subscribed_topics([list_of(half - 100, BYTES_MAX + 1)]) is None


def test_no_members_subscribe_to_nothing() -> None:
    assert subscribed_topics([]) == frozenset()


@pytest.mark.parametrize(
    "data",
    [
        "",
        "0000",
        "0000 0000",
        "ffff 00000000",
        "0000 ffffffff",
        "0000 00000001",
        "0000 00000001 0005 61",
        "0000 00000001 ffff",
        "0000 00000001 0001 ff",
        "0000 7fffffff 0001 61",
    ],
)
def test_what_is_not_a_consumers_is_unknown(data: str) -> None:
    assert subscribed_topics([V0, bytes.fromhex(data)]) is None
    with pytest.raises(ValueError, match="not a consumer's subscription"):
        read_subscription(bytes.fromhex(data))


@given(st.binary())
def test_no_bytes_break_it(data: bytes) -> None:
    topics = subscribed_topics([data])
    assert topics is None or all(isinstance(topic, str) for topic in topics)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (V0, Subscription(0, ("a", "bb"))),
        (V1, Subscription(1, ("a",), (TopicPartition("a", 0), TopicPartition("a", 2)))),
        (V3, Subscription(3, ("c",), (), "r")),
        (b"\0\x09" + V3[2:] + b"later", Subscription(3, ("c",), (), "r")),
    ],
)
def test_a_subscription_of_every_version(data: bytes, expected: Subscription) -> None:
    assert read_subscription(data) == expected


def test_the_version_of_any_bytes() -> None:
    assert [version_of(data) for data in (V0, V3, b"\0\x09", b"", b"\xff\xff")] == [0, 3, 9, 0, 0]


@pytest.mark.parametrize("version", [0, 1, 3])
def test_every_version_of_an_assignment_is_read(version: int) -> None:
    data = assignment(version, {"b": [2, 0], "a": [1]}, b"sticky")
    expected = (TopicPartition("b", 2), TopicPartition("b", 0), TopicPartition("a", 1))
    assert read_assignment(data) == MemberAssignment(expected, b"sticky")


def test_a_member_without_an_assignment() -> None:
    assert read_assignment(b"").partitions == ()
    assert read_assignment(assignment(0, {})).partitions == ()


@pytest.mark.parametrize(
    "data", [b"\0", assignment(0, {"t": [1]})[:12], struct.pack(">hi", -1, 0), b"\0\0\0\0\0\1\0\5t"]
)
def test_other_bytes_are_no_assignment(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a consumer's assignment"):
        read_assignment(data)


def test_an_assignment_is_written_as_consumers_write_it() -> None:
    partitions = {"b": frozenset({2, 0}), "a": frozenset({1})}
    assert encode_assignment(partitions, 1) == assignment(1, {"a": [1], "b": [0, 2]})
    assert encode_assignment({}, 9) == assignment(3, {})
