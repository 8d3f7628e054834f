"""Messages that Kafka 3.9 does not have, as Kafka 4 writes them, byte for byte."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.common.uuid import Uuid
from kafkapy.protocol.compile import decode
from kafkapy.protocol.messages import consumer_group_describe as described
from kafkapy.protocol.messages import consumer_group_heartbeat as heartbeat
from kafkapy.protocol.messages import list_config_resources as listing
from tests.harness.protocol.encoding import encode_bytes

ID = Uuid(bytes(15) + b"\1")
_ID = "00000000000000000000000000000001"
REQUEST = heartbeat.ConsumerGroupHeartbeatRequest(
    group_id="g",
    member_id="m",
    member_epoch=0,
    rebalance_timeout_ms=1,
    subscribed_topic_names=["t"],
    topic_partitions=[heartbeat.TopicPartitions(topic_id=ID, partitions=[2])],
)
HEAD = "0267 026d 00000000 00 00 00000001 02 0274"
TAIL = f"00 02 {_ID} 02 00000002 00 00"
GROUP = described.DescribedGroup(
    group_id="g",
    group_state="Stable",
    group_epoch=3,
    assignment_epoch=2,
    assignor_name="uniform",
    members=[
        described.Member(
            member_id="m",
            member_epoch=1,
            client_id="c",
            client_host="/h",
            assignment=described.Assignment(),
            target_assignment=described.Assignment(),
            member_type=1,
        )
    ],
)
_GROUP = "0000 00 0267 07537461626c65 00000003 00000002 08756e69666f726d 02"
_MEMBER = "026d 00 00 00000001 0263 032f68 01 00 0100 0100"

RESOURCE = listing.ConfigResource(resource_name="g", resource_type=32)


@pytest.mark.parametrize(
    ("version", "message", "expected"),
    [
        (0, REQUEST, f"{HEAD} {TAIL}"),
        (1, REQUEST, f"{HEAD} 00 {TAIL}"),
        (0, described.ConsumerGroupDescribeResponse(groups=[GROUP]), f"{_MEMBER}"),
        (1, described.ConsumerGroupDescribeResponse(groups=[GROUP]), f"{_MEMBER} 01"),
    ],
)
def test_bytes(version: int, message: Any, expected: str) -> None:
    if isinstance(message, described.ConsumerGroupDescribeResponse):
        expected = f"00000000 02 {_GROUP} {expected} 00 80000000 00 00"
    assert bytes(encode_bytes(message, version)).hex() == bytes.fromhex(expected).hex()
    decoded, _ = decode(type(message), version, memoryview(bytes.fromhex(expected)))
    assert encode_bytes(decoded, version) == encode_bytes(message, version)


def test_a_regular_expression() -> None:
    request = heartbeat.ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="m", subscribed_topic_regex="a"
    )
    expected = "0267 026d 00000000 00 00 ffffffff 00 0261 00 00 00"
    assert bytes(encode_bytes(request, 1)).hex() == bytes.fromhex(expected).hex()


@pytest.mark.parametrize(
    ("version", "message", "expected"),
    [
        (0, listing.ListConfigResourcesRequest(), "00"),
        (1, listing.ListConfigResourcesRequest(resource_types=[2, 32]), "03 02 20 00"),
        (0, listing.ListConfigResourcesResponse(config_resources=[RESOURCE]), "02 0267 00 00"),
        (1, listing.ListConfigResourcesResponse(config_resources=[RESOURCE]), "02 0267 20 00 00"),
    ],
)
def test_lists_of_resources(version: int, message: Any, expected: str) -> None:
    if isinstance(message, listing.ListConfigResourcesResponse):
        expected = f"00000000 0000 {expected}"
    assert bytes(encode_bytes(message, version)).hex() == bytes.fromhex(expected).hex()
