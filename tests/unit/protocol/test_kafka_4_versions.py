"""Versions that only Kafka 4 has, byte for byte as its message definitions have them."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.protocol.compile import decode, encode_bytes
from kafkapy.protocol.messages import describe_cluster, end_txn, fetch, list_offsets, metadata
from kafkapy.protocol.messages import update_features as features

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
