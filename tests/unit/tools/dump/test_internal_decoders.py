"""Records of internal topics as the dump shows them."""

from __future__ import annotations

import struct

import pytest

from kafkapy.record.batch_header import TimestampType
from kafkapy.record.records import Record
from kafkapy.tools.dump.decoders import UndecodableRecord
from kafkapy.tools.dump.internal_decoders import TOPIC_DECODERS


def record(key: bytes | None, value: bytes | None) -> Record:
    return Record(7, 0, TimestampType.CREATE_TIME, key, value, [], -1)


def test_offsets() -> None:
    decode = TOPIC_DECODERS["offsets_decoder"].decode
    key = b"\0\1\0\1g\0\1t\0\0\0\2"
    value = b"\0\3" + struct.pack(">qi", 5, -1) + b"\0\1m" + struct.pack(">q", 9)
    assert decode(record(key, value)) == (
        {"type": "1", "data": {"group": "g", "topic": "t", "partition": 2}},
        {
            "version": "3",
            "data": {"offset": 5, "leaderEpoch": -1, "metadata": "m", "commitTimestamp": 9},
        },
    )
    assert decode(record(key, None))[1] == "<DELETE>"
    assert decode(record(b"\0\x63", b"")) == ("Unknown record type 99 at offset 7, skipping.", None)
    assert decode(record(key, b"\0\7")) == (
        "Error at offset 7, skipping. version 7 is not known",
        None,
    )
    with pytest.raises(UndecodableRecord, match=r"offset 7 .* a missing key"):
        decode(record(None, b""))


def group_value(protocol_type: bytes, subscription: bytes) -> bytes:
    member = b"\0\1m\xff\xff\0\1c\0\1h" + struct.pack(">ii", 6, 7)
    member += struct.pack(">i", len(subscription)) + subscription + struct.pack(">i", 0)
    head = struct.pack(">hh", 3, len(protocol_type)) + protocol_type
    return head + b"\0\0\0\1\0\5range\0\1m" + struct.pack(">qi", 8, 1) + member


def test_members_subscriptions_are_opened_when_they_are_consumers() -> None:
    subscription = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"

    def shown(protocol_type: bytes, content: bytes) -> object:
        _, value = TOPIC_DECODERS["offsets_decoder"].decode(
            record(b"\0\2\0\1g", group_value(protocol_type, content))
        )
        assert isinstance(value, dict)
        (member,) = value["data"]["members"]
        assert member["assignment"] == ""
        return member["subscription"]

    assert shown(b"consumer", subscription) == {"topics": ["t"], "userData": None}
    assert shown(b"connect", subscription) == "AAAAAAABAAF0/////w=="
    assert shown(b"consumer", b"\0\0\x7f") == "AAB/"


def test_transactions() -> None:
    decode = TOPIC_DECODERS["transaction_log_decoder"].decode
    key = b"\0\0\0\2tx"
    partitions = b"\0\0\0\1\0\1t\0\0\0\2\0\0\0\0\0\0\0\3"
    value = struct.pack(">hqhib", 0, 4, 1, 60000, 1) + partitions + struct.pack(">qq", 11, 10)
    assert decode(record(key, value)) == (
        "transaction_metadata::transactionalId=tx",
        "producerId:4,producerEpoch:1,state=Ongoing,partitions=[t-0,t-3],"
        "txnLastUpdateTimestamp=11,txnTimeoutMs=60000",
    )
    assert decode(record(key, None))[1] == "<DELETE>"
    assert decode(record(b"\0\5", b"")) == ("unknown::version=5", None)
    for bad in (record(None, b""), record(key, b"\0\0"), record(key, value[:16] + b"\x63")):
        with pytest.raises(UndecodableRecord, match="record at offset 7"):
            decode(bad)


def test_the_progress_of_a_share_group() -> None:
    decode = TOPIC_DECODERS["share_group_state_decoder"].decode
    key = b"\0\0\0\1g" + bytes(15) + b"\1" + b"\0\0\0\2"
    batches = b"\2" + struct.pack(">qqbh", 5, 9, 0, 1) + b"\0"
    value = b"\0\0" + struct.pack(">iiiqqq", 1, 2, 3, 5, 100, 200) + batches
    snapshot = {
        "snapshotEpoch": 1,
        "stateEpoch": 2,
        "leaderEpoch": 3,
        "startOffset": 5,
        "createTimestamp": 100,
        "writeTimestamp": 200,
        "stateBatches": [
            {"firstOffset": 5, "lastOffset": 9, "deliveryState": 0, "deliveryCount": 1}
        ],
    }
    partition = {"groupId": "g", "topicId": "AAAAAAAAAAAAAAAAAAAAAQ", "partition": 2}
    assert decode(record(key, value + b"\0")) == (
        {"type": "0", "data": partition},
        {"version": "0", "data": snapshot},
    )
    counted = snapshot | {"deliveryCompleteCount": 4}
    assert decode(record(key, value + b"\1\0\4\0\0\0\4"))[1] == {"version": "0", "data": counted}
    assert decode(record(key, None))[1] == "<DELETE>"
    update = b"\0\0" + struct.pack(">iiq", 1, 3, 6) + b"\1\0"
    assert decode(record(b"\0\1" + key[2:], update)) == (
        {"type": "1", "data": partition},
        {
            "version": "0",
            "data": {"snapshotEpoch": 1, "leaderEpoch": 3, "startOffset": 6, "stateBatches": []},
        },
    )
    assert decode(record(b"\0\2" + key[2:], update)) == (
        "Unknown record type 2 at offset 7, skipping.",
        None,
    )
