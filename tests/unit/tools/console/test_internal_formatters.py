"""The texts are those that Kafka 3.9.1's console consumer printed for such records."""

from __future__ import annotations

import struct

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.tools.console.formatters import make_formatter
from kafkapy.tools.console.message_formatter import Message

OFFSET_KEY = b"\0\1\0\2g1\0\6orders\0\0\0\1"
OFFSET = struct.pack(">hqihq", 3, 5, 0, 0, 1795924622621)
GROUP_KEY = b"\0\2\0\2g1"
MEMBER = b"\0\1m\xff\xff\0\1c\0\x0a/127.0.0.1" + struct.pack(">iiii", 300000, 45000, 0, 0)
GROUP = b"\0\3\0\x08consumer\0\0\0\1\0\5range\0\1m" + struct.pack(">qi", 8, 1) + MEMBER
EMPTY_GROUP = b"\0\3\0\x08consumer\0\0\0\2\xff\xff\xff\xff" + struct.pack(">qi", 9, 0)
TRANSACTION_KEY = b"\0\0\0\3tx1"
PARTITIONS = b"\0\0\0\1\0\6orders\0\0\0\2\0\0\0\0\0\0\0\3"
TRANSACTION = struct.pack(">hqhib", 0, 1, 0, 60000, 1) + PARTITIONS + struct.pack(">qq", 99, 95)
EMPTY_TRANSACTION = struct.pack(">hqhibiqq", 0, 1, 0, 60000, 0, -1, 95, -1)
CONSUMER_GROUP_KEY = b"\0\3\0\2g1"

JSON = "org.apache.kafka.tools.consumer."
OFFSETS_TEXT = "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter"
GROUPS_TEXT = "kafka.coordinator.group.GroupMetadataManager$GroupMetadataMessageFormatter"
TRANSACTIONS_TEXT = "kafka.coordinator.transaction.TransactionLog$TransactionLogMessageFormatter"


def shown(formatter: str, key: bytes | None, value: bytes | None) -> str:
    message = Message("t", 0, 7, 0, "CreateTime", key, value, [])
    return make_formatter(formatter, {}).format(message).decode()


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        (
            OFFSET_KEY,
            OFFSET,
            '{"key":{"version":1,"data":{"group":"g1","topic":"orders","partition":1}},'
            '"value":{"version":3,"data":{"offset":5,"leaderEpoch":0,"metadata":"",'
            '"commitTimestamp":1795924622621}}}\n',
        ),
        (
            OFFSET_KEY,
            None,
            '{"key":{"version":1,"data":{"group":"g1","topic":"orders","partition":1}},'
            '"value":null}\n',
        ),
        (
            b"\0\x63",
            b"\0\x07",
            '{"key":{"version":99,"data":"unknown"},"value":{"version":7,"data":"unknown"}}\n',
        ),
        (None, None, '{"key":null,"value":null}\n'),
        (GROUP_KEY, GROUP, ""),
        (CONSUMER_GROUP_KEY, b"\0\0", ""),
    ],
)
def test_offsets_as_json(key: bytes | None, value: bytes | None, text: str) -> None:
    assert shown(f"{JSON}OffsetsMessageFormatter", key, value) == text


def test_groups_as_json() -> None:
    formatter = f"{JSON}GroupMetadataMessageFormatter"
    assert shown(formatter, GROUP_KEY, GROUP) == (
        '{"key":{"version":2,"data":{"group":"g1"}},"value":{"version":3,"data":{"protocolType":'
        '"consumer","generation":1,"protocol":"range","leader":"m","currentStateTimestamp":8,'
        '"members":[{"memberId":"m","groupInstanceId":null,"clientId":"c","clientHost":'
        '"/127.0.0.1","rebalanceTimeout":300000,"sessionTimeout":45000,"subscription":"",'
        '"assignment":""}]}}}\n'
    )
    assert shown(formatter, OFFSET_KEY, OFFSET) == ""


def test_transactions_as_json() -> None:
    assert shown(f"{JSON}TransactionLogMessageFormatter", TRANSACTION_KEY, TRANSACTION) == (
        '{"key":{"version":0,"data":{"transactionalId":"tx1"}},"value":{"version":0,"data":'
        '{"producerId":1,"producerEpoch":0,"transactionTimeoutMs":60000,"transactionStatus":1,'
        '"transactionPartitions":[{"topic":"orders","partitionIds":[0,3]}],'
        '"transactionLastUpdateTimestampMs":99,"transactionStartTimestampMs":95}}}\n'
    )


def test_offsets_as_text() -> None:
    assert shown(OFFSETS_TEXT, OFFSET_KEY, OFFSET) == (
        "[g1,orders,1]::OffsetAndMetadata(offset=5, leaderEpoch=Optional[0], metadata=, "
        "commitTimestamp=1795924622621, expireTimestamp=None)\n"
    )
    expiring = struct.pack(">hqhqq", 1, 5, 0, 8, 9)
    assert shown(OFFSETS_TEXT, OFFSET_KEY, expiring) == (
        "[g1,orders,1]::OffsetAndMetadata(offset=5, leaderEpoch=Optional.empty, metadata=, "
        "commitTimestamp=8, expireTimestamp=Some(9))\n"
    )
    assert shown(OFFSETS_TEXT, OFFSET_KEY, None) == "[g1,orders,1]::NULL\n"
    assert shown(OFFSETS_TEXT, GROUP_KEY, GROUP) == shown(OFFSETS_TEXT, None, b"") == ""


def test_groups_as_text() -> None:
    assert shown(GROUPS_TEXT, GROUP_KEY, GROUP) == (
        "g1::GroupMetadata(groupId=g1, generation=1, protocolType=Some(consumer), "
        "currentState=Stable, members=HashMap(m -> MemberMetadata(memberId=m, "
        "groupInstanceId=None, clientId=c, clientHost=/127.0.0.1, sessionTimeoutMs=45000, "
        "rebalanceTimeoutMs=300000, supportedProtocols=List(range))))\n"
    )
    assert shown(GROUPS_TEXT, GROUP_KEY, EMPTY_GROUP) == (
        "g1::GroupMetadata(groupId=g1, generation=2, protocolType=Some(consumer), "
        "currentState=Empty, members=HashMap())\n"
    )


def test_transactions_as_text() -> None:
    assert shown(TRANSACTIONS_TEXT, TRANSACTION_KEY, TRANSACTION) == (
        "tx1::TransactionMetadata(transactionalId=tx1, producerId=1, producerEpoch=0, "
        "txnTimeoutMs=60000, state=Ongoing, pendingState=None, "
        "topicPartitions=HashSet(orders-0, orders-3), txnStartTimestamp=95, "
        "txnLastUpdateTimestamp=99)\n"
    )
    assert shown(TRANSACTIONS_TEXT, TRANSACTION_KEY, EMPTY_TRANSACTION) == (
        "tx1::TransactionMetadata(transactionalId=tx1, producerId=1, producerEpoch=0, "
        "txnTimeoutMs=60000, state=Empty, pendingState=None, topicPartitions=HashSet(), "
        "txnStartTimestamp=-1, txnLastUpdateTimestamp=95)\n"
    )


@pytest.mark.parametrize("formatter", [f"{JSON}OffsetsMessageFormatter", OFFSETS_TEXT])
@pytest.mark.parametrize(("key", "value"), [(b"\0", OFFSET), (OFFSET_KEY, OFFSET[:9])])
def test_a_record_of_another_topic_is_named(formatter: str, key: bytes, value: bytes) -> None:
    with pytest.raises(ConfigError, match="t-0 at offset 7 is no record of this formatter: "):
        shown(formatter, key, value)
