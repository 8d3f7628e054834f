"""The public doors: decode, encode, and what they refuse."""

from __future__ import annotations

import pytest

from kafkapy.common.errors import ApiError, ErrorCode, ProtocolViolation
from kafkapy.protocol.compile import (
    decode,
    decoder,
    encode,
    encoder,
    sliced_decoder,
    sliced_encoder,
)
from kafkapy.protocol.messages.create_topics import CreateTopicsRequest
from kafkapy.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kafkapy.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkapy.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tests.harness.protocol.encoding import encode_bytes


def produce(records: bytes | memoryview | list[bytes]) -> ProduceRequest:
    partition = PartitionProduceData(index=3, records=records)
    topic = TopicProduceData(name="events", partition_data=[partition])
    return ProduceRequest(acks=-1, timeout_ms=30000, topic_data=[topic])


def test_a_classic_version() -> None:
    wire = (
        "ffff" + "ffff" + "00007530" + "00000001" + "0006" + b"events".hex() + "00000001"
        "00000003" + "00000003" + b"abc".hex()
    )
    assert encode_bytes(produce(b"abc"), 7).hex() == wire
    assert decode(ProduceRequest, 7, bytes.fromhex(wire)) == (produce(b"abc"), len(wire) // 2)


def test_a_flexible_version() -> None:
    wire = "00" + "ffff" + "00007530" + "02" + "07" + b"events".hex() + "02"
    wire += "00000003" + "04" + b"abc".hex() + "00" + "00" + "00"
    assert encode_bytes(produce(b"abc"), 9).hex() == wire
    assert decode(ProduceRequest, 9, b"??" + bytes.fromhex(wire), 2)[0] == produce(b"abc")


def test_decoded_records_are_a_view_into_the_frame() -> None:
    frame = bytearray(encode_bytes(produce(b"abc"), 9))
    message, _ = decode(ProduceRequest, 9, memoryview(frame))
    records = message.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is frame


def test_big_records_are_encoded_by_reference() -> None:
    records = memoryview(bytes(100_000))
    partition = PartitionData(partition_index=1, records=[records, b"tail"])
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])
    parts: list[bytes | bytearray | memoryview] = []
    encode(response, 12, parts)
    assert parts[1] is records
    assert b"".join(parts) == encode_bytes(response, 12)
    decoded, _ = decode(FetchResponse, 12, b"".join(parts))
    assert decoded.responses[0].partitions[0].records == bytes(records) + b"tail"


def test_fields_outside_the_version_are_defaults_after_decoding() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="a")])
    request.include_topic_authorized_operations = True
    decoded, _ = decode(MetadataRequest, 4, encode_bytes(request, 4))
    assert decoded == MetadataRequest(topics=[MetadataRequestTopic(name="a")])


def test_functions_are_compiled_once() -> None:
    assert decoder(MetadataRequest, 5) is decoder(MetadataRequest, 5)
    assert encoder(MetadataRequest, 5) is encoder(MetadataRequest, 5)
    assert decoder(MetadataRequest, 5) is not decoder(MetadataRequest, 6)


@pytest.mark.parametrize("version", [-1, 8])
def test_an_unknown_version(version: int) -> None:
    sliced_decoder(CreateTopicsRequest, 0)
    sliced_encoder(CreateTopicsRequest, 0)
    for refused in (
        lambda: decode(CreateTopicsRequest, version, b""),
        lambda: encode_bytes(CreateTopicsRequest(), version),
    ):
        with pytest.raises(ApiError, match="versions 0 to 7, not") as raised:
            refused()
        assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    "request_",
    [
        MetadataRequest(topics=[MetadataRequestTopic(name=None)]),
        MetadataRequest(topics=[MetadataRequestTopic(name="x" * 32768)]),
        MetadataRequest(topics=["not a struct"]),  # type: ignore[list-item]
    ],
)
def test_a_message_that_does_not_fit_its_version(request_: MetadataRequest) -> None:
    with pytest.raises(ValueError, match="MetadataRequest v7: "):
        encode_bytes(request_, 7)


def test_a_number_out_of_range() -> None:
    with pytest.raises(ValueError, match="CreateTopicsRequest v7: "):
        encode_bytes(CreateTopicsRequest(timeout_ms=2**31), 7)


def test_null_where_null_is_not_allowed() -> None:
    null_topics = b"\xff\xff\xff\xff"
    assert decode(MetadataRequest, 1, null_topics)[0].topics is None
    with pytest.raises(ProtocolViolation, match="MetadataRequest v0: -1 elements of topics"):
        decode(MetadataRequest, 0, null_topics)
