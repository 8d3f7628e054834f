"""Records of share groups, byte for byte."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kafkapy.common.errors import ApiError
from kafkapy.coordinator.groups.consumer.records import (
    ConsumerKey,
    CurrentAssignment,
    MemberMetadata,
    MemberState,
    RecordType,
    ShareStates,
    Value,
)
from kafkapy.coordinator.groups.share.records import (
    ShareEpoch,
    encode_key,
    encode_value,
    read_share_key,
    read_share_value,
)
from tests.harness.cores.consumer_shell import topic_id

A, B = topic_id(1), topic_id(2)
_A, _B = "00000000000000000000000000000001", "00000000000000000000000000000002"
GROUP = "0001 67"
ROWS: Mapping[str, tuple[ConsumerKey, Value | ShareEpoch, str, str]] = {
    "member": (
        ConsumerKey(RecordType.MEMBER, "g", "m"),
        MemberMetadata(None, None, "c", "/h", ("t",), None, -1, None),
        f"000a {GROUP} 0001 6d",
        "0000 00 0263 032f68 02 0274 00",
    ),
    "group epoch": (
        ConsumerKey(RecordType.GROUP_EPOCH, "g"),
        ShareEpoch(7, -1),
        f"000b {GROUP}",
        "0000 00000007 ffffffffffffffff 00",
    ),
    "target epoch": (
        ConsumerKey(RecordType.TARGET_EPOCH, "g"),
        7,
        f"000c {GROUP}",
        "0000 00000007 00",
    ),
    "target": (
        ConsumerKey(RecordType.TARGET, "g", "m"),
        {A: frozenset({1, 0})},
        f"000d {GROUP} 0001 6d",
        f"0000 02 {_A} 03 00000000 00000001 00 00",
    ),
    "current": (
        ConsumerKey(RecordType.CURRENT, "g", "m"),
        CurrentAssignment(2, 1, MemberState.STABLE, {A: frozenset({0})}),
        f"000e {GROUP} 0001 6d",
        f"0000 00000002 00000001 00 02 {_A} 02 00000000 00 00",
    ),
    "states": (
        ConsumerKey(RecordType.SHARE_STATES, "g"),
        ShareStates({A: frozenset({1})}, {A: frozenset({0})}, frozenset({B}), {A: "t", B: "u"}),
        f"000f {GROUP}",
        f"0000 02 {_A} 0274 02 00000001 00 02 {_A} 0274 02 00000000 00 02 {_B} 0275 00 00",
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_records(name: str) -> None:
    key, value, key_bytes, value_bytes = ROWS[name]
    assert encode_key(key) == bytes.fromhex(key_bytes)
    assert read_share_key(bytes.fromhex(key_bytes)) == key
    assert encode_value(value).hex() == bytes.fromhex(value_bytes).hex()
    assert read_share_value(key, bytes.fromhex(value_bytes)) == value
    with pytest.raises(ApiError):
        read_share_value(key, bytes.fromhex(value_bytes)[:-2])


def test_other_keys() -> None:
    assert encode_key(ConsumerKey(RecordType.TOPICS, "g")) is None
    for version in (2, 5, 9, 16):
        assert read_share_key(bytes([0, version, 0, 1, 0x67])) is None
