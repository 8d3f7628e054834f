"""A follower's requests are the codec's, whichever way they were packed, and so are its answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import ZERO_UUID, Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.compile import decode
from kafkapy.protocol.headers import decode_request_header, encode_request, encode_response
from kafkapy.protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from kafkapy.replication.follower_fetcher import LeaderRow
from kafkapy.replication.follower_session import FetchRow, FollowerFetch, FollowerSession
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.replicas.follower_calls import FollowerCalls, LeaderAnswer, to_leader_answer
from tests.harness.storage.partitions import TOPIC_ID

OTHER_ID = Uuid(bytes(range(1, 17)))


class ScriptedClient:
    """A node client that keeps frames, and reads what the test has it receive."""

    client_id = "broker-2-fetcher-0"

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.packed = 0
        self._read: Callable[[memoryview], Any]

    def call(self, message: FetchRequest, version: int, on_answer: object) -> None:
        self.frames.append(encode_request(message, version, 9, self.client_id))

    def call_frame(
        self,
        make: Callable[[int], bytes],
        read: Callable[[memoryview], Any],
        on_answer: object,
    ) -> None:
        self.packed += 1
        self.frames.append(make(9))
        self._read = read

    def receives(self, response: FetchResponse) -> Any:
        frame = b"".join(encode_response(response, ApiKey.FETCH, 17, 9))
        return self._read(memoryview(frame)[4:])


class Scene:
    def __init__(self) -> None:
        self.client = ScriptedClient()
        self.broker_epoch = 5
        self.calls = FollowerCalls(
            KafkaConfig({}),
            self.client,
            2,
            lambda: self.broker_epoch,  # type: ignore[arg-type]
        )

    def sends(self, fetch: FollowerFetch) -> tuple[FetchRequest, int]:
        """The request as its leader reads it, and its version."""
        self.calls.send(fetch, lambda outcome: None)
        frame = memoryview(self.client.frames[-1])
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        header, body = decode_request_header(frame[4:])
        assert header[2:] == (9, self.client.client_id)
        message, end = decode(FetchRequest, header.api_version, frame[4:], body)
        assert end == len(frame) - 4
        return message, header.api_version


def row(index: int = 0, offset: int = 0, topic: str = "t", topic_id: Uuid = TOPIC_ID) -> FetchRow:
    return FetchRow(TopicPartition(topic, index), topic_id, offset, 3, 2, 1, 1 << 20)


def rows(*asked: FetchRow) -> dict[TopicPartition, FetchRow]:
    return {one.topic_partition: one for one in asked}


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.fixture
def session() -> FollowerSession:
    """One whose leader knows two partitions."""
    session = FollowerSession()
    session.handle_response(session.build(rows(row(), row(1))), 77)
    return session


def named(request: FetchRequest) -> list[tuple[Uuid, int, int]]:
    return [
        (topic.topic_id, partition.partition, partition.fetch_offset)
        for topic in request.topics
        for partition in topic.partitions
    ]


def test_a_request_that_names_one_partition_is_packed(
    scene: Scene, session: FollowerSession
) -> None:
    for number in range(1, 4):
        fetch = session.build(rows(row(), row(1, number)))
        request, version = scene.sends(fetch)
        assert version == 17
        assert (request.session_id, request.session_epoch) == (77, number)
        assert named(request) == [(TOPIC_ID, 1, number)]
        [partition] = request.topics[0].partitions
        assert partition.current_leader_epoch == 3
        assert (partition.last_fetched_epoch, partition.log_start_offset) == (2, 1)
        assert partition.partition_max_bytes == 1 << 20
        assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (2, 5)
        assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (500, 1, 10 << 20)
        session.handle_response(fetch, 77)
    assert scene.client.packed == 3


def test_a_new_broker_epoch_and_a_new_session_are_told(
    scene: Scene, session: FollowerSession
) -> None:
    scene.sends(session.build(rows(row(), row(1, 1))))
    scene.broker_epoch = 6
    request, _ = scene.sends(session.build(rows(row(), row(1, 1))))
    assert request.replica_state.replica_epoch == 6
    session.reset()
    session.handle_response(session.build(rows(row(), row(1))), 78)
    request, _ = scene.sends(session.build(rows(row(), row(1, 1))))
    assert (request.session_id, request.session_epoch) == (78, 1)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ([row(), row(1)], []),
        ([row(0, 1), row(1, 1)], [(TOPIC_ID, 0, 1), (TOPIC_ID, 1, 1)]),
        ([row(0, 1)], [(TOPIC_ID, 0, 1)]),
    ],
)
def test_other_requests_are_encoded(
    scene: Scene,
    session: FollowerSession,
    asked: list[FetchRow],
    expected: list[tuple[Uuid, int, int]],
) -> None:
    request, version = scene.sends(session.build(rows(*asked)))
    assert (named(request), version) == (expected, 17)
    assert len(request.forgotten_topics_data) == 2 - len(asked)
    assert scene.client.packed == 0


def test_a_full_request_is_encoded(scene: Scene) -> None:
    request, _ = scene.sends(FollowerSession().build(rows(row())))
    assert (request.session_id, request.session_epoch) == (0, 0)
    assert scene.client.packed == 0


def test_without_topic_ids_there_are_names(scene: Scene) -> None:
    session = FollowerSession()
    session.handle_response(session.build(rows(row(), row(topic="old", topic_id=ZERO_UUID))), 77)
    fetch = session.build(rows(row(0, 1), row(topic="old", topic_id=ZERO_UUID)))
    request, version = scene.sends(fetch)
    assert (request.topics[0].topic, version) == ("t", 12)
    answered = FetchResponse(
        session_id=77,
        responses=[FetchableTopicResponse(topic="old", partitions=[PartitionData()])],
    )
    assert to_leader_answer(fetch, answered).rows[0].topic_partition == TopicPartition("old", 0)


def response(index: int = 1, topic_id: Uuid = TOPIC_ID, **fields: Any) -> FetchResponse:
    data = PartitionData(
        partition_index=index,
        high_watermark=8,
        last_stable_offset=8,
        log_start_offset=1,
        aborted_transactions=None,
        records=b"records",
    )
    for name, value in fields.items():
        setattr(data, name, value)
    topic = FetchableTopicResponse(topic_id=topic_id, partitions=[data])
    return FetchResponse(session_id=77, responses=[topic])


@pytest.mark.parametrize("index", [0, 1])
def test_both_ways_to_read_an_answer_are_the_same(
    scene: Scene, session: FollowerSession, index: int
) -> None:
    fetch = session.build(rows(row(), row(1, 1)))
    scene.sends(fetch)
    expected = LeaderRow(TopicPartition("t", index), 0, 8, 1, None, b"records")
    packed = scene.client.receives(response(index))
    assert not isinstance(packed, FetchResponse)
    for outcome in (packed, response(index)):
        assert to_leader_answer(fetch, outcome) == LeaderAnswer(0, 77, [expected])


def test_an_answer_about_another_topic_of_the_session(scene: Scene) -> None:
    session = FollowerSession()
    other = row(4, topic="other", topic_id=OTHER_ID)
    session.handle_response(session.build(rows(row(), other)), 77)
    fetch = session.build(rows(row(0, 1), other))
    scene.sends(fetch)
    found = to_leader_answer(fetch, scene.client.receives(response(4, OTHER_ID)))
    assert found.rows[0].topic_partition == TopicPartition("other", 4)
    unknown = to_leader_answer(fetch, scene.client.receives(response(4, Uuid(bytes(16)))))
    assert [one.topic_partition for one in unknown.rows] == [TopicPartition("", 4)]


def test_an_answer_that_is_not_plain(scene: Scene, session: FollowerSession) -> None:
    fetch = session.build(rows(row(), row(1, 1)))
    scene.sends(fetch)
    parted = response(diverging_epoch=EpochEndOffset(epoch=2, end_offset=5), records=None)
    found = to_leader_answer(fetch, scene.client.receives(parted))
    assert found.rows == [LeaderRow(TopicPartition("t", 1), 0, 8, 1, (2, 5), b"")]
    refused = to_leader_answer(fetch, scene.client.receives(FetchResponse(error_code=70)))
    assert refused == LeaderAnswer(70, 0, [])
