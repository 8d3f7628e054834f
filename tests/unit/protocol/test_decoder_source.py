"""Hostile bytes: every message and version gives a message or ProtocolViolation, nothing else."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from kafkapy.common.errors import MessageTooLarge, ProtocolViolation
from kafkapy.protocol.compile import (
    decode,
    decoder,
    sliced_decoder,
    sliced_encoder,
)
from kafkapy.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.protocol.messages.metadata import MetadataRequest
from kafkapy.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkapy.protocol.messages.produce import ProduceRequest
from kafkapy.protocol.primitives import Buffer, tagged_field, tagged_fields, uvarint
from kafkapy.protocol.schema import Message
from tests.harness.protocol.encoding import encode_bytes
from tests.harness.protocol.protocol_examples import all_messages, filled

MESSAGES = all_messages()
LYING_COUNT, LYING_COMPACT_COUNT = bytes.fromhex("7fffffff"), bytes.fromhex("ffffffff0f")


def survives(cls: type[Message], version: int, wire: bytes) -> None:
    """Decode `wire`; any exception but ProtocolViolation fails the test."""
    try:
        _, position = decode(cls, version, wire)
    except ProtocolViolation:
        return
    assert 0 <= position <= len(wire)


def test_every_truncation_is_refused() -> None:
    for cls, version in MESSAGES:
        wire = encode_bytes(filled(cls, version), version)
        for size in range(len(wire)):
            with pytest.raises(ProtocolViolation):
                decode(cls, version, wire[:size])


def test_every_changed_byte_is_survived() -> None:
    for cls, version in MESSAGES:
        wire = bytearray(encode_bytes(filled(cls, version), version))
        for index, byte in enumerate(wire):
            for other in (0x00, 0x7F, 0x80, 0xFF):
                wire[index] = other
                survives(cls, version, bytes(wire))
            wire[index] = byte


def test_random_bytes_are_survived() -> None:
    random = Random(20260101)
    for cls, version in MESSAGES:
        for _ in range(30):
            survives(cls, version, random.randbytes(random.randrange(60)))


@pytest.mark.parametrize("nested", [False, True], ids=["one array", "many arrays"])
def test_a_message_of_too_many_tiny_elements_is_refused_early(nested: bool) -> None:
    """Each byte of it would be an object of a hundred."""
    cls: type[Message]
    if nested:
        topic = b"\x02t" + uvarint(100 + 1) + b"\0\0\0\1\0\0" * 100 + b"\0"
        wire = b"\0\xff\xff\0\0\0\0" + uvarint(3000 + 1) + topic * 3000 + b"\0"
        cls, version = ProduceRequest, 9
    else:
        wire = (300_000).to_bytes(4, "big") + b"\0\0" * 300_000
        cls, version = MetadataRequest, 1
    room = 8 << 20
    tracemalloc.start()
    try:
        for decode_it in (decoder(cls, version), in_slices(cls, version)):
            with pytest.raises(MessageTooLarge, match="too large in memory"):
                decode_it(memoryview(wire), 0, room)
        assert tracemalloc.get_traced_memory()[1] < 2 * len(wire) + room
    finally:
        tracemalloc.stop()


def in_slices(cls: type[Message], version: int) -> Callable[..., Any]:
    """The sliced decoder, called as the other one is; each slice must be one element at most."""

    def decode_all(buf: memoryview, position: int, room: int = 1 << 28) -> Any:
        work = sliced_decoder(cls, version)(buf, position, room)
        try:
            while True:
                assert next(work) <= 1
        except StopIteration as end:
            return end.value

    return decode_all


def test_in_slices_the_same_is_decoded_and_encoded() -> None:
    for cls, version in MESSAGES:
        message = filled(cls, version)
        wire = encode_bytes(message, version)
        parts: list[Buffer] = []
        for cost in sliced_encoder(cls, version)(message, parts):
            assert cost <= 1
        assert b"".join(parts) == wire
        assert in_slices(cls, version)(memoryview(wire), 0) == decode(cls, version, wire)


def test_unknown_tagged_fields_cost_room() -> None:
    """5 bytes of them a row are skipped, and 400,000 in one frame are refused."""
    fields = tagged_fields([tagged_field(90, []), tagged_field(91, [])])
    topic = b"\2t\1" + fields
    wire = b"\0\xff\xff\0\0\0\0" + uvarint(2) + topic + b"\0"
    message, _ = decode(ProduceRequest, 9, wire)
    assert [topic.name for topic in message.topic_data] == ["t"]
    many = b"\2t\1" + uvarint(1000) + b"\x5a\0" * 1000
    wire = b"\0\xff\xff\0\0\0\0" + uvarint(201) + many * 200 + b"\0"
    with pytest.raises(MessageTooLarge):
        decoder(ProduceRequest, 9)(memoryview(wire), 0, 8 << 20)


def test_fields_beside_known_tagged_ones_are_counted_too() -> None:
    wire = encode_bytes(FetchRequest(), 17)[:-1] + uvarint(1025) + b"\xe7\x07\0" * 1025
    with pytest.raises(ProtocolViolation, match="1025 tagged fields in one section"):
        decode(FetchRequest, 17, wire)


def test_a_compact_string_is_not_longer_than_a_classic_one() -> None:
    for size, is_refused in ((32767, False), (32768, True)):
        wire = uvarint(2) + b"\0" * 16 + uvarint(size + 1) + b"t" * size + b"\0" + b"\0\0\0"
        if is_refused:
            with pytest.raises(ProtocolViolation, match="32768 bytes of name"):
                decode(MetadataRequest, 12, wire)
        else:
            decode(MetadataRequest, 12, wire)


@pytest.mark.parametrize("version", [8, 9])
def test_a_string_that_is_not_utf_8_is_read_as_java_reads_it(version: int) -> None:
    """librdkafka takes any bytes for the metadata of a commit: Kafka commits the offset."""
    partition = OffsetCommitRequestPartition(committed_metadata="caf??")
    topic = OffsetCommitRequestTopic(name="t", partitions=[partition])
    wire = encode_bytes(OffsetCommitRequest(topics=[topic]), version)
    wire = wire.replace(b"caf??", b"caf\xe9\xff")
    for message, position in (
        decode(OffsetCommitRequest, version, wire),
        in_slices(OffsetCommitRequest, version)(memoryview(wire), 0),
    ):
        assert message.topics[0].partitions[0].committed_metadata == "caf\ufffd\ufffd"
        assert position == len(wire)


def test_as_many_elements_as_a_great_cluster_has_are_read() -> None:
    topics = 200_000
    wire = (topics).to_bytes(4, "big") + b"\0\3abc" * topics
    message, _ = decode(MetadataRequest, 1, wire)
    assert message.topics is not None
    assert len(message.topics) == topics


def test_a_lying_length_allocates_nothing() -> None:
    """A count or size of billions, wherever it stands, costs no more than the frame is worth."""
    lies = [(cls, cls.MAX_VERSION, LYING_COMPACT_COUNT) for cls, version in MESSAGES if not version]
    lies += [
        (cls, version, LYING_COUNT)
        for cls, version in MESSAGES
        if version + 1 == (cls.FIRST_FLEXIBLE_VERSION or cls.MAX_VERSION + 1)
    ]
    frames = [
        (decoder(cls, version), wire[:index] + lie + wire[index + len(lie) :])
        for cls, version, lie in lies
        for wire in [encode_bytes(filled(cls, version), version)]
        for index in range(0, len(wire), 3)
    ]
    gc.collect()
    tracemalloc.start()
    try:
        for decode_, frame in frames:
            try:
                decode_(memoryview(frame), 0)
            except ProtocolViolation:
                pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


def test_unknown_tagged_fields_are_skipped() -> None:
    unknown = tagged_fields([tagged_field(9, [b"later"]), tagged_field(1000, [bytes(200)])])
    known = MetadataRequest(topics=None)
    wire = encode_bytes(known, 12)
    assert wire[-1:] == b"\0"
    wire = wire[:-1] + unknown
    assert decode(MetadataRequest, 12, wire) == (known, len(wire))


def test_unknown_tagged_fields_beside_known_ones() -> None:
    wire = encode_bytes(FetchResponse(), 12)[:-1]
    endpoint = bytes.fromhex("02" + "00000001" + "0268" + "00000002" + "00" + "00")
    section = tagged_fields([tagged_field(0, [endpoint]), tagged_field(7, [b"??"])])
    decoded, position = decode(FetchResponse, 16, wire + section)
    assert position == len(wire + section)
    assert [(each.node_id, each.host) for each in decoded.node_endpoints] == [(1, "h")]
    assert decode(FetchResponse, 12, wire + section)[0] == FetchResponse()


@pytest.mark.parametrize("size", [16, 18, 2**34])
def test_a_tagged_field_of_another_size_than_it_says(size: int) -> None:
    wire = encode_bytes(FetchResponse(), 12)[:-1]
    endpoint = bytes.fromhex("02" + "00000001" + "026800000002" + "00" + "00")
    section = uvarint(1) + uvarint(0) + uvarint(size) + endpoint
    with pytest.raises(ProtocolViolation):
        decode(FetchResponse, 16, wire + section + bytes(4))


@pytest.mark.parametrize(
    ("version", "wire", "reason"),
    [
        (7, "fffe", "ProduceRequest v7: -2 bytes of transactional_id"),
        (7, "0005" + "61", "5 bytes of transactional_id"),
        (7, "7fff" + "ff" * 32767, "a string of 32767 bytes that are not UTF-8"),
        (7, "ffff" + "0001" + "00000000" + "00000002" + "0000", "2 elements of topic_data"),
        (9, "00" + "0001" + "00000000" + "00", "-1 elements of topic_data"),
        (9, "ffffffffffff", "5 bytes"),
        (9, "", "ProduceRequest v9: index out of"),
    ],
)
def test_the_refusal_names_what_is_wrong(version: int, wire: str, reason: str) -> None:
    with pytest.raises(ProtocolViolation, match=reason):
        decode(ProduceRequest, version, bytes.fromhex(wire))
