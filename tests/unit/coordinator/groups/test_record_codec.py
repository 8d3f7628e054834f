"""Keys and values of `__consumer_offsets`: bytes worked out by hand from Kafka's definitions."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.groups.record_codec import (
    GroupKey,
    GroupValue,
    MemberValue,
    OffsetAndMetadata,
    OffsetKey,
    fits_record,
    group_key,
    group_value,
    offset_key,
    offset_value,
    read_group_value,
    read_key,
    read_offset_value,
)

TOPIC_3 = TopicPartition("top", 3)
MEMBER = MemberValue("m", "i", "c", "/h", 60_000, 10_000, b"\x01\x02", b"\x03")
GROUP = GroupValue("consumer", 5, "range", "m", 1_700_000_000_000, [MEMBER])
DYNAMIC = MEMBER._replace(group_instance_id=None)

# 1_700_000_000_000 is 0000018bcfe56800; 60_000 is 0000ea60; 10_000 is 00002710.
GROUP_KEY = "0002  0002 6769"
GROUP_HEAD = "0008 636f6e73756d6572  00000005  0005 72616e6765  0001 6d"
GROUP_V3 = f"0003 {GROUP_HEAD} 0000018bcfe56800  00000001" + (
    "0001 6d  0001 69  0001 63  0002 2f68  0000ea60  00002710  00000002 0102  00000001 03"
)
GROUP_V2 = f"0002 {GROUP_HEAD} 0000018bcfe56800  00000001" + (
    "0001 6d  0001 63  0002 2f68  0000ea60  00002710  00000002 0102  00000001 03"
)
GROUP_V1 = f"0001 {GROUP_HEAD} 00000001" + (
    "0001 6d  0001 63  0002 2f68  0000ea60  00002710  00000002 0102  00000001 03"
)
GROUP_V0 = f"0000 {GROUP_HEAD} 00000001" + (
    "0001 6d  0001 63  0002 2f68  00002710  00000002 0102  00000001 03"
)
EMPTY_GROUP = "0003 0008 636f6e73756d6572 00000006 ffff ffff 0000018bcfe56800 00000000"

OFFSET_V3 = "0003  0000000000000102  00000007  0002 6869  0000018bcfe56800"
OFFSET_V2 = "0002  0000000000000102  0002 6869  0000018bcfe56800"
OFFSET_V1 = "0001  0000000000000102  0002 6869  0000018bcfe56800  0000018bcfe56801"
OFFSET_V1_NO_EXPIRY = "0001  0000000000000102  0002 6869  0000018bcfe56800  ffffffffffffffff"
OFFSET_V0 = "0000  0000000000000102  0002 6869  0000018bcfe56800"
OFFSET = OffsetAndMetadata(258, 7, "hi", 1_700_000_000_000)
OLD_OFFSET = OFFSET._replace(leader_epoch=-1)
EXPIRING = OLD_OFFSET._replace(expire_timestamp_ms=1_700_000_000_001)

# Written.


def test_offset_key_bytes() -> None:
    data = offset_key("g", TOPIC_3)
    assert data == bytes.fromhex("0001  0001 67  0003 746f70  00000003")


def test_group_key_bytes() -> None:
    assert group_key("gi") == bytes.fromhex(GROUP_KEY)


def test_strings_are_utf_8_and_sized_in_bytes() -> None:
    assert group_key("gé") == bytes.fromhex("0002  0003 67c3a9")


def test_offset_value_bytes() -> None:
    assert offset_value(OFFSET) == bytes.fromhex(OFFSET_V3)


def test_an_offset_with_its_own_expiry_is_value_v1() -> None:
    commit = OFFSET._replace(expire_timestamp_ms=1_700_000_000_001)
    assert offset_value(commit) == bytes.fromhex(OFFSET_V1)


def test_group_value_bytes() -> None:
    assert group_value(GROUP) == bytes.fromhex(GROUP_V3)


def test_a_dynamic_members_instance_is_null() -> None:
    data = group_value(GROUP._replace(members=[DYNAMIC]))
    assert data == bytes.fromhex(GROUP_V3.replace("0001 69", "ffff"))


def test_an_empty_group_has_no_protocol_and_no_leader() -> None:
    value = GroupValue("consumer", 6, None, None, 1_700_000_000_000, [])
    assert group_value(value) == bytes.fromhex(EMPTY_GROUP)
    assert read_group_value(bytes.fromhex(EMPTY_GROUP)) == value


def test_no_state_timestamp_is_minus_one() -> None:
    value = GroupValue("", 0, None, None, None, [])
    data = group_value(value)
    assert data == bytes.fromhex("0003 0000 00000000 ffff ffff ffffffffffffffff 00000000")
    assert read_group_value(data) == value


# Read.


@pytest.mark.parametrize("version", ["0000", "0001"])
def test_offset_keys_of_both_versions(version: str) -> None:
    data = bytes.fromhex(f"{version}  0001 67  0003 746f70  00000003")
    assert read_key(data) == OffsetKey("g", TOPIC_3)


def test_group_keys() -> None:
    assert read_key(bytes.fromhex(GROUP_KEY)) == GroupKey("gi")


@pytest.mark.parametrize("version", ["0003", "0004", "000f", "7fff"])
def test_keys_of_the_new_group_protocol_are_not_for_us(version: str) -> None:
    assert read_key(bytes.fromhex(f"{version} 0001 67")) is None


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (OFFSET_V3, OFFSET),
        (OFFSET_V2, OLD_OFFSET),
        (OFFSET_V1, EXPIRING),
        (OFFSET_V1_NO_EXPIRY, OLD_OFFSET),
        (OFFSET_V0, OLD_OFFSET),
    ],
    ids=["v3", "v2", "v1", "v1 no expiry", "v0"],
)
def test_offset_values_of_every_version(data: str, expected: OffsetAndMetadata) -> None:
    assert read_offset_value(bytes.fromhex(data)) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (GROUP_V3, GROUP),
        (GROUP_V2, GROUP._replace(members=[DYNAMIC])),
        (GROUP_V1, GROUP._replace(state_timestamp_ms=None, members=[DYNAMIC])),
        (
            GROUP_V0,
            GROUP._replace(
                state_timestamp_ms=None, members=[DYNAMIC._replace(rebalance_timeout_ms=10_000)]
            ),
        ),
    ],
    ids=["v3", "v2", "v1", "v0"],
)
def test_group_values_of_every_version(data: str, expected: GroupValue) -> None:
    assert read_group_value(bytes.fromhex(data)) == expected


def test_a_memoryview_reads_like_bytes() -> None:
    assert read_offset_value(memoryview(bytes.fromhex(OFFSET_V3))) == OFFSET


# Malformed.


@pytest.mark.parametrize("data", [OFFSET_V3, OFFSET_V2, OFFSET_V1, OFFSET_V0])
def test_a_cut_offset_value_is_corrupt(data: str) -> None:
    whole = bytes.fromhex(data)
    for size in range(len(whole)):
        with pytest.raises(ApiError) as refused:
            read_offset_value(whole[:size])
        assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("data", [GROUP_V3, GROUP_V2, GROUP_V1, GROUP_V0])
def test_a_cut_group_value_is_corrupt(data: str) -> None:
    whole = bytes.fromhex(data)
    for size in range(len(whole)):
        with pytest.raises(ApiError) as refused:
            read_group_value(whole[:size])
        assert refused.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("version", ["0004", "ffff"])
def test_values_of_a_later_kafka_are_refused(version: str) -> None:
    for read, data in ((read_offset_value, OFFSET_V3), (read_group_value, GROUP_V3)):
        with pytest.raises(ApiError, match="version"):
            read(bytes.fromhex(version + data[4:]))


@given(st.binary(max_size=60))
def test_no_bytes_give_anything_but_a_value_or_an_api_error(data: bytes) -> None:
    for read in (read_key, read_offset_value, read_group_value):
        with contextlib.suppress(ApiError):
            read(data)


# Both ways.

strings = st.text(max_size=20)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(0, 2**63 - 1)
members = st.builds(
    MemberValue,
    strings,
    st.none() | strings,
    strings,
    strings,
    int32,
    int32,
    st.binary(max_size=20),
    st.binary(max_size=20),
)


@given(strings, strings, int32)
def test_what_is_written_as_a_key_is_read(group_id: str, topic: str, partition: int) -> None:
    key = OffsetKey(group_id, TopicPartition(topic, partition))
    assert read_key(offset_key(*key)) == key
    assert read_key(group_key(group_id)) == GroupKey(group_id)


@given(
    st.builds(
        GroupValue,
        strings,
        int32,
        st.none() | strings,
        st.none() | strings,
        st.none() | int64,
        st.lists(members, max_size=3),
    )
)
def test_what_is_written_as_a_group_is_read(value: GroupValue) -> None:
    assert read_group_value(group_value(value)) == value


@given(st.builds(OffsetAndMetadata, int64, int32, strings, int64, st.none() | int64))
def test_what_is_written_as_an_offset_is_read(commit: OffsetAndMetadata) -> None:
    expected = commit
    if commit.expire_timestamp_ms is not None:
        expected = commit._replace(leader_epoch=-1)
    assert read_offset_value(offset_value(commit)) == expected


def test_strings_fit_by_their_bytes() -> None:
    assert fits_record(None, "", "a" * 32_767)
    assert not fits_record("a" * 32_768)
    assert not fits_record("a", "é" * 16_384)
