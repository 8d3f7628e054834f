"""Our coordinator's records read back by the schemas; every version's bytes are used up."""

from __future__ import annotations

from typing import Any

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid
from kafkapy.coordinator.groups.consumer import records as consumer_records
from kafkapy.coordinator.groups.consumer.records import (
    ConsumerKey,
    CurrentAssignment,
    MemberState,
    RecordType,
    ResolvedRegex,
    ShareStates,
)
from kafkapy.coordinator.groups.record_codec import (
    GroupValue,
    MemberValue,
    OffsetAndMetadata,
    group_key,
    group_value,
    offset_key,
    offset_value,
)
from kafkapy.coordinator.groups.share import records as share_records
from kafkapy.coordinator.groups.share.records import ShareEpoch
from kafkapy.tools.dump.internal_topics import CONSUMER_OFFSETS
from kafkapy.tools.dump.record_schema import read_struct, read_version


def read(key: bytes, value: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    kind = read_version(key)
    schemas = CONSUMER_OFFSETS[kind]
    return read_struct(schemas[0], kind, key), read_struct(schemas[1], read_version(value), value)


def test_offsets() -> None:
    key = offset_key("g", TopicPartition("t", 3))
    plain = OffsetAndMetadata(5, 2, "m", 1000)
    found = read(key, offset_value(plain))
    assert found == (
        {"group": "g", "topic": "t", "partition": 3},
        {"offset": 5, "leaderEpoch": 2, "metadata": "m", "commitTimestamp": 1000},
    )
    expiring = read(key, offset_value(plain._replace(expire_timestamp_ms=2000)))[1]
    assert list(expiring.items())[-1] == ("expireTimestamp", 2000)
    assert "leaderEpoch" not in expiring


def test_groups() -> None:
    member = MemberValue("m", None, "c", "/h", 6, 7, b"\1", b"")
    value = group_value(GroupValue("consumer", 4, "range", "m", 1000, [member]))
    assert read(group_key("g"), value) == (
        {"group": "g"},
        {
            "protocolType": "consumer",
            "generation": 4,
            "protocol": "range",
            "leader": "m",
            "currentStateTimestamp": 1000,
            "members": [
                {
                    "memberId": "m",
                    "groupInstanceId": None,
                    "clientId": "c",
                    "clientHost": "/h",
                    "rebalanceTimeout": 6,
                    "sessionTimeout": 7,
                    "subscription": "AQ==",
                    "assignment": "",
                }
            ],
        },
    )


def test_the_group_protocol_of_kip_848() -> None:
    member_key = b"\0\5\0\1g\0\1m"
    value = b"\0\0" + b"\0\0" + b"\2c" + b"\2h" + b"\2\2t" + b"\0" + b"\0\0\0\5" + b"\0"
    classic = b"\1" + b"\0\0\0\7" + b"\2\2r\3ab\0" + b"\0"
    tagged = b"\1\0" + bytes([len(classic)]) + classic
    key, found = read(member_key, value + tagged)
    assert key == {"groupId": "g", "memberId": "m"}
    assert found["subscribedTopicNames"] == ["t"]
    assert found["classicMemberMetadata"] == {
        "sessionTimeoutMs": 7,
        "supportedProtocols": [{"name": "r", "metadata": "YWI="}],
    }
    assert read(b"\0\3\0\1g", b"\0\0\0\0\0\4\0")[1] == {"epoch": 4}


def read_of_share_group(kind: RecordType, value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    key = share_records.encode_key(ConsumerKey(kind, "g", "m"))
    assert key is not None
    return read(key, share_records.encode_value(value))


def test_no_record_of_a_share_group_is_hidden() -> None:
    topic_id = Uuid(bytes(15) + b"\1")
    partitions = [{"topicId": str(topic_id), "partitions": [0, 2]}]
    named = {"topicId": str(topic_id), "topicName": "t"}
    group, member = {"groupId": "g"}, {"groupId": "g", "memberId": "m"}
    assigned = {topic_id: frozenset({0, 2})}
    assert read_of_share_group(RecordType.GROUP_EPOCH, ShareEpoch(4, -7)) == (
        group,
        {"epoch": 4, "metadataHash": -7},
    )
    assert read_of_share_group(RecordType.TARGET_EPOCH, 5) == (group, {"assignmentEpoch": 5})
    assert read_of_share_group(RecordType.TARGET, assigned) == (
        member,
        {"topicPartitions": partitions},
    )
    current = CurrentAssignment(6, 5, MemberState.STABLE, assigned)
    assert read_of_share_group(RecordType.CURRENT, current) == (
        member,
        {
            "memberEpoch": 6,
            "previousMemberEpoch": 5,
            "state": MemberState.STABLE,
            "assignedPartitions": partitions,
        },
    )
    states = ShareStates({}, assigned, frozenset({topic_id}), {topic_id: "t"})
    assert read_of_share_group(RecordType.SHARE_STATES, states) == (
        group,
        {
            "initializingTopics": [],
            "initializedTopics": [named | {"partitions": [0, 2]}],
            "deletingTopics": [named],
        },
    )


def test_no_regular_expression_of_a_group_is_hidden() -> None:
    key = ConsumerKey(RecordType.REGEX, "g", "t.*")
    value = ResolvedRegex(frozenset({"t1"}), 3, 1000)
    assert read(consumer_records.encode_key(key), consumer_records.encode_value(key, value)) == (
        {"groupId": "g", "regularExpression": "t.*"},
        {"topics": ["t1"], "version": 3, "timestamp": 1000},
    )
