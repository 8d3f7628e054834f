"""Schemas of the records of Kafka's internal topics, by version.

The key's version is the type of the record. Versions from 3 on belong to the group protocol of
KIP-848 and to share groups (KIP-932).
"""

from __future__ import annotations

from typing import Final

from kafkapy.tools.dump.record_schema import Field, Nullable, Schema

_STRING, _BYTES, _UUID = "string", "bytes", "uuid"
_NULLABLE_STRING: Final = Nullable(_STRING)

_GROUP: Final = Schema((Field("groupId", _STRING),), highest=0x7FFF)
_MEMBER: Final = Schema((Field("groupId", _STRING), Field("memberId", _STRING)), highest=0x7FFF)
_REGEX: Final = Schema(
    (Field("groupId", _STRING), Field("regularExpression", _STRING)), highest=0x7FFF
)
_EPOCH: Final = Schema((Field("epoch", "int32"),), flexible=0)
_TARGET_EPOCH_VALUE: Final = Schema((Field("assignmentEpoch", "int32"),), flexible=0)

_OFFSET_KEY: Final = Schema(
    (Field("group", _STRING), Field("topic", _STRING), Field("partition", "int32")), highest=1
)
_OFFSET_VALUE: Final = Schema(
    (
        Field("offset", "int64"),
        Field("leaderEpoch", "int32", since=3),
        Field("metadata", _STRING),
        Field("commitTimestamp", "int64"),
        Field("expireTimestamp", "int64", since=1, until=1),
    ),
    highest=4,
    flexible=4,
)
_CLASSIC_MEMBER: Final = (
    Field("memberId", _STRING),
    Field("groupInstanceId", _NULLABLE_STRING, since=3),
    Field("clientId", _STRING),
    Field("clientHost", _STRING),
    Field("rebalanceTimeout", "int32", since=1),
    Field("sessionTimeout", "int32"),
    Field("subscription", _BYTES),
    Field("assignment", _BYTES),
)
_CLASSIC_GROUP_VALUE: Final = Schema(
    (
        Field("protocolType", _STRING),
        Field("generation", "int32"),
        Field("protocol", _NULLABLE_STRING),
        Field("leader", _NULLABLE_STRING),
        Field("currentStateTimestamp", "int64", since=2),
        Field("members", [_CLASSIC_MEMBER]),
    ),
    highest=4,
    flexible=4,
)
_TOPIC_PARTITIONS: Final = (Field("topicId", _UUID), Field("partitions", ["int32"]))
_TARGET_VALUE: Final = Schema((Field("topicPartitions", [_TOPIC_PARTITIONS]),), flexible=0)
_PARTITION_METADATA: Final = (
    Field("topicId", _UUID),
    Field("topicName", _STRING),
    Field("numPartitions", "int32"),
    Field(
        "partitionMetadata",
        [(Field("partition", "int32"), Field("racks", [_STRING]))],
    ),
)
_CLASSIC_METADATA: Final = (
    Field("sessionTimeoutMs", "int32"),
    Field("supportedProtocols", [(Field("name", _STRING), Field("metadata", _BYTES))]),
)
_MEMBER_VALUE: Final = Schema(
    (
        Field("instanceId", _NULLABLE_STRING),
        Field("rackId", _NULLABLE_STRING),
        Field("clientId", _STRING),
        Field("clientHost", _STRING),
        Field("subscribedTopicNames", [_STRING]),
        Field("subscribedTopicRegex", _NULLABLE_STRING),
        Field("rebalanceTimeoutMs", "int32"),
        Field("serverAssignor", _NULLABLE_STRING),
        Field("classicMemberMetadata", Nullable(_CLASSIC_METADATA), tag=0),
    ),
    flexible=0,
)
_CURRENT_ASSIGNMENT_VALUE: Final = Schema(
    (
        Field("memberEpoch", "int32"),
        Field("previousMemberEpoch", "int32"),
        Field("state", "int8"),
        Field("assignedPartitions", [_TOPIC_PARTITIONS]),
        Field("partitionsPendingRevocation", [_TOPIC_PARTITIONS]),
    ),
    flexible=0,
)
_SHARE_MEMBER_VALUE: Final = Schema(
    (
        Field("rackId", _NULLABLE_STRING),
        Field("clientId", _STRING),
        Field("clientHost", _STRING),
        Field("subscribedTopicNames", [_STRING]),
    ),
    flexible=0,
)
_SHARE_TOPIC: Final = (Field("topicId", _UUID), Field("topicName", _STRING))
_SHARE_TOPICS: Final = [(*_SHARE_TOPIC, Field("partitions", ["int32"]))]
_SHARE_PARTITIONS_VALUE: Final = Schema(
    (Field("initializedTopics", _SHARE_TOPICS), Field("deletingTopics", [_SHARE_TOPIC])),
    flexible=0,
)
_SHARE_STATES_VALUE: Final = Schema(
    (Field("initializingTopics", _SHARE_TOPICS), *_SHARE_PARTITIONS_VALUE.fields), flexible=0
)
# Members of share groups revoke no partitions.
_SHARE_CURRENT_ASSIGNMENT_VALUE: Final = Schema(_CURRENT_ASSIGNMENT_VALUE.fields[:-1], flexible=0)
_REGEX_VALUE: Final = Schema(
    (Field("topics", [_STRING]), Field("version", "int64"), Field("timestamp", "int64")),
    flexible=0,
)

# key version -> (key, value), as `GroupCoordinatorRecordSerde`. From 11 on as in Kafka 4.1: our
# brokers write these records; Kafka 3.9 writes none of them.
CONSUMER_OFFSETS: Final[dict[int, tuple[Schema, Schema]]] = {
    0: (_OFFSET_KEY, _OFFSET_VALUE),
    1: (_OFFSET_KEY, _OFFSET_VALUE),
    2: (Schema((Field("group", _STRING),), highest=2), _CLASSIC_GROUP_VALUE),
    3: (_GROUP, _EPOCH),
    4: (_GROUP, Schema((Field("topics", [_PARTITION_METADATA]),), flexible=0)),
    5: (_MEMBER, _MEMBER_VALUE),
    6: (_GROUP, _TARGET_EPOCH_VALUE),
    7: (_MEMBER, _TARGET_VALUE),
    8: (_MEMBER, _CURRENT_ASSIGNMENT_VALUE),
    9: (_GROUP, _SHARE_PARTITIONS_VALUE),
    10: (_MEMBER, _SHARE_MEMBER_VALUE),
    11: (_GROUP, Schema((*_EPOCH.fields, Field("metadataHash", "int64")), flexible=0)),
    12: (_GROUP, _TARGET_EPOCH_VALUE),
    13: (_MEMBER, _TARGET_VALUE),
    14: (_MEMBER, _SHARE_CURRENT_ASSIGNMENT_VALUE),
    15: (_GROUP, _SHARE_STATES_VALUE),
    16: (_REGEX, _REGEX_VALUE),
}

_SHARE_PARTITION_KEY: Final = Schema(
    (Field("groupId", _STRING), Field("topicId", _UUID), Field("partition", "int32")),
    highest=0x7FFF,
)
_STATE_BATCHES: Final = [
    (
        Field("firstOffset", "int64"),
        Field("lastOffset", "int64"),
        Field("deliveryState", "int8"),
        Field("deliveryCount", "int16"),
    )
]
_DELIVERY_COMPLETE_COUNT: Final = Field("deliveryCompleteCount", "int32", tag=0)
_SHARE_SNAPSHOT_VALUE: Final = Schema(
    (
        Field("snapshotEpoch", "int32"),
        Field("stateEpoch", "int32"),
        Field("leaderEpoch", "int32"),
        Field("startOffset", "int64"),
        _DELIVERY_COMPLETE_COUNT,
        Field("createTimestamp", "int64"),
        Field("writeTimestamp", "int64"),
        Field("stateBatches", _STATE_BATCHES),
    ),
    flexible=0,
)
_SHARE_UPDATE_VALUE: Final = Schema(
    (
        Field("snapshotEpoch", "int32"),
        Field("leaderEpoch", "int32"),
        Field("startOffset", "int64"),
        _DELIVERY_COMPLETE_COUNT,
        Field("stateBatches", _STATE_BATCHES),
    ),
    flexible=0,
)

# key version -> (key, value), as `ShareCoordinatorRecordSerde` of Kafka 4.
SHARE_GROUP_STATE: Final[dict[int, tuple[Schema, Schema]]] = {
    0: (_SHARE_PARTITION_KEY, _SHARE_SNAPSHOT_VALUE),
    1: (_SHARE_PARTITION_KEY, _SHARE_UPDATE_VALUE),
}

_NAMED_PARTITIONS: Final = [(Field("topic", _STRING), Field("partitions", ["int32"]))]

CONSUMER_SUBSCRIPTION: Final = Schema(
    (
        Field("topics", [_STRING]),
        Field("userData", Nullable(_BYTES)),
        Field("ownedPartitions", _NAMED_PARTITIONS, since=1),
        Field("generationId", "int32", since=2),
        Field("rackId", _NULLABLE_STRING, since=3),
    ),
    highest=3,
)
CONSUMER_ASSIGNMENT: Final = Schema(
    (Field("assignedPartitions", _NAMED_PARTITIONS), Field("userData", Nullable(_BYTES))),
    highest=3,
)

TRANSACTION_KEY: Final = Schema((Field("transactionalId", _STRING),))
TRANSACTION_VALUE: Final = Schema(
    (
        Field("producerId", "int64"),
        Field("producerEpoch", "int16"),
        Field("transactionTimeoutMs", "int32"),
        Field("transactionStatus", "int8"),
        Field(
            "transactionPartitions",
            Nullable([(Field("topic", _STRING), Field("partitionIds", ["int32"]))]),
        ),
        Field("transactionLastUpdateTimestampMs", "int64"),
        Field("transactionStartTimestampMs", "int64"),
    ),
    highest=1,
    flexible=1,
)
SNAPSHOT_HEADER: Final = Schema(
    (Field("version", "int16"), Field("lastContainedLogTimestamp", "int64")), flexible=0
)
SNAPSHOT_FOOTER: Final = Schema((Field("version", "int16"),), flexible=0)

TRANSACTION_STATES: Final = (
    *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort"),
    *("CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence"),
)
