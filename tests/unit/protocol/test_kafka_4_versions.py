"""Versions that only Kafka 4 has, byte for byte as its message definitions have them."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.common.uuid import Uuid
from kafkapy.protocol.compile import decode
from kafkapy.protocol.messages import (
    api_versions,
    describe_cluster,
    end_txn,
    fetch,
    list_offsets,
    metadata,
    offset_fetch,
    produce,
)
from kafkapy.protocol.messages import offset_commit as commit
from kafkapy.protocol.messages import txn_offset_commit as txn
from kafkapy.protocol.messages import update_features as features
from tests.harness.protocol.encoding import encode_bytes

ID = Uuid(bytes(15) + b"\1")
_ID = "00000000000000000000000000000001"
_ROW = "00000003 ffffffff 0000000000000005 ffffffff ffffffffffffffff 00000000"


@pytest.mark.parametrize(
    ("version", "message", "expected"),
    [
        (4, end_txn.EndTxnResponse(error_code=3), "00000000 0003 00"),
        (
            5,
            end_txn.EndTxnResponse(producer_id=7, producer_epoch=2),
            "00000000 0000 0000000000000007 0002 00",
        ),
        (
            10,
            list_offsets.ListOffsetsRequest(replica_id=-1, timeout_ms=5),
            "ffffffff 00 01 00000005 00",
        ),
        (
            13,
            metadata.MetadataResponse(error_code=129),
            "00000000 01 00 ffffffff 01 0081 00",
        ),
        (
            2,
            describe_cluster.DescribeClusterRequest(include_fenced_brokers=True),
            "00 01 01 00",
        ),
        (
            13,
            produce.ProduceRequest(
                acks=1, timeout_ms=2, topic_data=[produce.TopicProduceData(topic_id=ID)]
            ),
            f"00 0001 00000002 02 {_ID} 01 00 00",
        ),
        (
            13,
            produce.ProduceResponse(responses=[produce.TopicProduceResponse(topic_id=ID)]),
            f"02 {_ID} 01 00 00000000 00",
        ),
        (
            10,
            commit.OffsetCommitRequest(
                group_id="g",
                member_id="m",
                topics=[commit.OffsetCommitRequestTopic(topic_id=ID)],
            ),
            f"0267 ffffffff 026d 00 02 {_ID} 01 00 00",
        ),
        (
            10,
            commit.OffsetCommitResponse(topics=[commit.OffsetCommitResponseTopic(topic_id=ID)]),
            f"00000000 02 {_ID} 01 00 00",
        ),
        (
            10,
            offset_fetch.OffsetFetchRequest(
                groups=[
                    offset_fetch.OffsetFetchRequestGroup(
                        group_id="g", topics=[offset_fetch.OffsetFetchRequestTopics(topic_id=ID)]
                    )
                ]
            ),
            f"02 0267 00 ffffffff 02 {_ID} 01 00 00 00 00",
        ),
        (
            10,
            offset_fetch.OffsetFetchResponse(
                groups=[
                    offset_fetch.OffsetFetchResponseGroup(
                        group_id="g", topics=[offset_fetch.OffsetFetchResponseTopics(topic_id=ID)]
                    )
                ]
            ),
            f"00000000 02 0267 02 {_ID} 01 00 0000 00 00",
        ),
        (
            6,
            txn.TxnOffsetCommitRequest(
                transactional_id="x",
                group_id="g",
                producer_id=7,
                member_id="m",
                topics=[txn.TxnOffsetCommitRequestTopic(topic_id=ID)],
            ),
            f"0278 0267 0000000000000007 0000 ffffffff 026d 00 02 {_ID} 01 00 00",
        ),
        (
            6,
            txn.TxnOffsetCommitResponse(topics=[txn.TxnOffsetCommitResponseTopic(topic_id=ID)]),
            f"00000000 02 {_ID} 01 00 00",
        ),
        (
            5,
            api_versions.ApiVersionsRequest(
                client_software_name="a",
                client_software_version="b",
                cluster_id="c",
                node_id=3,
            ),
            "0261 0262 0263 00000003 00",
        ),
        (2, features.UpdateFeaturesResponse(error_code=1), "00000000 0001 00 00"),
        (1, features.UpdateFeaturesResponse(error_code=1), "00000000 0001 00 01 00"),
    ],
)
def test_bytes(version: int, message: Any, expected: str) -> None:
    data = bytes(encode_bytes(message, version))
    assert data.hex() == bytes.fromhex(expected).hex()
    assert decode(type(message), version, data)[0] == message


@pytest.mark.parametrize(
    ("high_watermark", "tags"), [(2**63 - 1, "00"), (9, "01 01 08" + "00" * 7 + "09")]
)
def test_a_followers_high_watermark(high_watermark: int, tags: str) -> None:
    row = fetch.FetchPartition(partition=3, fetch_offset=5, high_watermark=high_watermark)
    request = fetch.FetchRequest(topics=[fetch.FetchTopic(partitions=[row])])
    data = bytes(encode_bytes(request, 18))
    assert bytes.fromhex(_ROW + tags).hex() in data.hex()
    assert decode(fetch.FetchRequest, 18, data)[0].topics[0].partitions == [row]
