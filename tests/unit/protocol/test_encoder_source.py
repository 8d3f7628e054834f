"""Generated encoders: fields at their default are left out; lengths at the encoding's borders."""

from __future__ import annotations

import tracemalloc

import pytest

from kafkapy.protocol.compile import decode, sliced_encoder
from kafkapy.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafkapy.protocol.messages.api_versions import ApiVersionsResponse, SupportedFeatureKey
from kafkapy.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsResponse
from kafkapy.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from kafkapy.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeResponse
from kafkapy.protocol.primitives import Buffer
from tests.harness.protocol.encoding import encode_bytes


def partition_bytes(**tagged: object) -> bytes:
    """The end of a v12 fetch partition: records and tagged fields."""
    partition = PartitionData(records=b"", **tagged)  # type: ignore[arg-type]
    topic = FetchableTopicResponse(topic="", partitions=[partition])
    wire = encode_bytes(FetchResponse(responses=[topic]), 12)
    return wire[wire.index(b"\xff\xff\xff\xff\x01") + 4 :]


def test_tagged_fields_at_their_default_are_left_out() -> None:
    bare = b"\x01" + b"\0" + b"\0\0"
    assert partition_bytes() == bare
    # An equal value is left out too, not only the shared default itself.
    assert partition_bytes(current_leader=LeaderIdAndEpoch(leader_id=-1)) == bare


def test_tagged_fields_are_written_in_the_order_of_their_tags() -> None:
    wire = partition_bytes(
        current_leader=LeaderIdAndEpoch(leader_id=1, leader_epoch=2),
        diverging_epoch=EpochEndOffset(epoch=3, end_offset=4),
    )
    diverging = "00" + "0d" + "00000003" + "0000000000000004" + "00"
    leader = "01" + "09" + "00000001" + "00000002" + "00"
    assert wire.hex() == "01" + "02" + diverging + leader + "0000"


def test_tags_of_numbers_flags_and_arrays() -> None:
    response = ApiVersionsResponse(
        finalized_features_epoch=5,
        supported_features=[SupportedFeatureKey(name="f", max_version=1)],
        zk_migration_ready=True,
    )
    wire = encode_bytes(response, 3)
    feature = "02" + "02" + b"f".hex() + "0000" + "0001" + "00"
    tags = "03" + "0008" + feature + "0108" + "0000000000000005" + "0301" + "01"
    assert wire.hex() == "0000" + "01" + "00000000" + tags
    assert encode_bytes(response, 2).hex() == "0000" + "00000000" + "00000000"


@pytest.mark.parametrize("count", [0, 1, 15, 16, 126, 127, 128, 16383])
@pytest.mark.parametrize("version", [1, 12])
def test_lengths(count: int, version: int) -> None:
    """Arrays of numbers, of structs, and strings, around the sizes where the encoding changes."""
    numbers = MetadataResponsePartition(replica_nodes=list(range(count)))
    response = MetadataResponse(
        topics=[
            MetadataResponseTopic(name="x" * count, partitions=[numbers]),
            MetadataResponseTopic(partitions=[MetadataResponsePartition()] * count),
        ]
    )
    wire = encode_bytes(response, version)
    assert decode(MetadataResponse, version, wire) == (response, len(wire))


def test_a_nullable_array_of_numbers() -> None:
    def wire(replicas: list[int] | None) -> str:
        partition = ReassignablePartition(partition_index=1, replicas=replicas)
        topic = ReassignableTopic(name="", partitions=[partition])
        request = AlterPartitionReassignmentsRequest(timeout_ms=0, topics=[topic])
        return encode_bytes(request, 0).hex()[8:]

    head, tail = "02" + "01" + "02" + "00000001", "00" + "00" + "00"
    assert wire(None) == head + "00" + tail
    assert wire([]) == head + "01" + tail
    assert wire([7]) == head + "02" + "00000007" + tail


def test_an_array_of_strings() -> None:
    response = SaslHandshakeResponse(mechanisms=["PLAIN", "é"])
    wire = "0000" + "00000002" + "0005" + b"PLAIN".hex() + "0002" + "c3a9"
    assert encode_bytes(response, 1).hex() == wire


def test_an_answer_of_many_rows_takes_no_more_memory_than_its_bytes() -> None:
    """Chunks of each field, kept until the end, took fifty times as much: 200 MB for 1 MB of
    group names."""
    rows = [DescribedGroup(group_id=f"g{i}", group_state="Dead") for i in range(20_000)]
    message = DescribeGroupsResponse(groups=rows)
    parts: list[Buffer] = []
    tracemalloc.start()
    for _ in sliced_encoder(DescribeGroupsResponse, 4)(message, parts):
        pass
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    encoded = b"".join(parts)
    assert decode(DescribeGroupsResponse, 4, encoded) == (message, len(encoded))
    assert peak_bytes < 3 * len(encoded)
