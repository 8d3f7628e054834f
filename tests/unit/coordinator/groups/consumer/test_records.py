"""Records of consumer groups, byte for byte."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.coordinator.groups.consumer.assignment import TopicIdPartition
from kafkapy.coordinator.groups.consumer.records import (
    ClassicMember,
    ConsumerKey,
    CurrentAssignment,
    MemberMetadata,
    MemberState,
    RecordType,
    ResolvedRegex,
    TopicMetadata,
    Value,
    encode_key,
    encode_value,
    read_consumer_key,
    read_value,
)
from tests.harness.cores.consumer_shell import topic_id

A = topic_id(1)
_A = "00000000000000000000000000000001"
GROUP = "0001 67"  # the string "g"
ROWS: Mapping[str, tuple[ConsumerKey, Value, str, str]] = {
    "group epoch": (
        ConsumerKey(RecordType.GROUP_EPOCH, "g"),
        7,
        f"0003 {GROUP}",
        "0000 00000007 00",
    ),
    "topics": (
        ConsumerKey(RecordType.TOPICS, "g"),
        {"t": TopicMetadata(A, "t", 3)},
        f"0004 {GROUP}",
        f"0000 02 {_A} 0274 00000003 01 00 00",
    ),
    "member": (
        ConsumerKey(RecordType.MEMBER, "g", "m"),
        MemberMetadata("i", None, "c", "/h", ("t",), "a.*", 45_000, "range"),
        f"0005 {GROUP} 0001 6d",
        "0000 0269 00 0263 032f68 02 0274 04612e2a 0000afc8 0672616e6765 00",
    ),
    "classic member": (
        ConsumerKey(RecordType.MEMBER, "g", "m"),
        MemberMetadata(
            None, None, "c", "/h", ("t",), None, -1, None, ClassicMember(9, (("range", b"ab"),))
        ),
        f"0005 {GROUP} 0001 6d",
        "0000 00 00 0263 032f68 02 0274 00 ffffffff 00"
        "01 00 11 01 00000009 02 0672616e6765 036162 00 00",
    ),
    "target epoch": (
        ConsumerKey(RecordType.TARGET_EPOCH, "g"),
        7,
        f"0006 {GROUP}",
        "0000 00000007 00",
    ),
    "target": (
        ConsumerKey(RecordType.TARGET, "g", "m"),
        {A: frozenset({1, 0})},
        f"0007 {GROUP} 0001 6d",
        f"0000 02 {_A} 03 00000000 00000001 00 00",
    ),
    "current": (
        ConsumerKey(RecordType.CURRENT, "g", "m"),
        CurrentAssignment(
            7,
            6,
            MemberState.UNREVOKED_PARTITIONS,
            {A: frozenset({0})},
            {A: frozenset({1})},
            {TopicIdPartition(A, 0): 5, TopicIdPartition(A, 1): 6},
        ),
        f"0008 {GROUP} 0001 6d",
        f"0000 00000007 00000006 01 02 {_A} 02 00000000 01 00 05 02 00000005"
        f" 02 {_A} 02 00000001 01 00 05 02 00000006 00",
    ),
    "regex": (
        ConsumerKey(RecordType.REGEX, "g", "a.*"),
        ResolvedRegex(frozenset({"t"}), 5, 9),
        f"0010 {GROUP} 0003 612e2a",
        "0000 02 0274 0000000000000005 0000000000000009 00",
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_a_record_is_kafkas(row: str) -> None:
    key, value, key_hex, value_hex = ROWS[row]
    assert encode_key(key) == bytes.fromhex(key_hex)
    assert encode_value(key, value) == bytes.fromhex(value_hex)
    assert read_consumer_key(bytes.fromhex(key_hex)) == key
    assert read_value(key, bytes.fromhex(value_hex)) == value


@pytest.mark.parametrize("version", [0, 1, 2, 9, 15, 17])
def test_keys_of_other_records_are_not_ours(version: int) -> None:
    assert read_consumer_key(version.to_bytes(2, "big") + bytes.fromhex(GROUP)) is None


def test_racks_and_tags_of_other_versions_are_passed_over() -> None:
    topics = f"0000 02 {_A} 0274 00000003 02 00000000 02 0272 00 00 00"
    key = ConsumerKey(RecordType.TOPICS, "g")
    assert read_value(key, bytes.fromhex(topics)) == {"t": TopicMetadata(A, "t", 3)}
    current = f"0000 00000007 00000006 00 02 {_A} 02 00000000 00 01 00"
    found = read_value(ConsumerKey(RecordType.CURRENT, "g", "m"), bytes.fromhex(current))
    assert found == CurrentAssignment(7, 6, MemberState.STABLE, {A: frozenset({0})})
    epoch = "0000 00000007 01 00 08 0000000000000001"
    assert read_value(ConsumerKey(RecordType.GROUP_EPOCH, "g"), bytes.fromhex(epoch)) == 7


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (RecordType.GROUP_EPOCH, "0001 00000007 00"),  # a later version
        (RecordType.GROUP_EPOCH, "0000 0000"),
        (RecordType.CURRENT, "0000 00000007 00000006 07 01 01 00"),  # no such state
        (RecordType.TARGET, f"0000 7f {_A} 02 00000000 00"),
    ],
)
def test_what_cannot_be_read_is_corrupt(kind: RecordType, data: str) -> None:
    with pytest.raises(ApiError) as refusal:
        read_value(ConsumerKey(kind, "g", "m"), bytes.fromhex(data))
    assert refusal.value.code is ErrorCode.CORRUPT_MESSAGE
