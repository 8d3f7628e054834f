"""Encodes a follower's fetch requests, and decodes its leader's responses.

Hot file. Most requests and responses of a session contain one partition. `FetchShape` encodes and
decodes those, the general codec all others. There is one shape for each leader.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.fetch_shape import FetchShape, ResponseRow
from kafkapy.protocol.headers import RequestHeader, decode_response
from kafkapy.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from kafkapy.replication.follower_fetcher import LeaderRow
from kafkapy.replication.follower_session import FollowerFetch

if TYPE_CHECKING:
    from kafkapy.server.config.kafka_config import KafkaConfig
    from kafkapy.server.interbroker.node_client import NodeClient, OnAnswer

_VERSION: Final = 17
_VERSION_WITH_NAMES: Final = 12


class LeaderAnswer(NamedTuple):
    """A leader's response: the top-level error, the session id, and the rows."""

    error: int
    session_id: int
    rows: list[LeaderRow]


class FollowerCalls:
    """The fetches of broker `broker_id` by one client. Each request calls `broker_epoch()`."""

    def __init__(
        self,
        config: KafkaConfig,
        client: NodeClient,
        broker_id: int,
        broker_epoch: Callable[[], int],
    ) -> None:
        get = config.get_int
        self._max_wait_ms = get("replica.fetch.wait.max.ms")
        self._min_bytes = get("replica.fetch.min.bytes")
        self._max_bytes = get("replica.fetch.response.max.bytes")
        self._client = client
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._shape: FetchShape | None = None
        self._shape_epoch = -1

    def send(self, fetch: FollowerFetch, on_answer: OnAnswer) -> None:
        """Send a fetch to the leader. `on_answer` receives the decoded response, or
        NodeUnavailable.

        Raises:
            NodeUnavailable: the client was closed.
        """
        is_plain = len(fetch.rows) == 1 and fetch.session_epoch > 0 and not fetch.forgotten
        if is_plain and fetch.uses_topic_ids:
            self._send_with_shape(self._session_shape(fetch), fetch, on_answer)
        else:
            version = _VERSION if fetch.uses_topic_ids else _VERSION_WITH_NAMES
            self._client.call(self._request(fetch), version, on_answer)

    def _session_shape(self, fetch: FollowerFetch) -> FetchShape:
        shape, epoch = self._shape, self._broker_epoch()
        if shape is None or shape.session_id != fetch.session_id or epoch != self._shape_epoch:
            header = RequestHeader(ApiKey.FETCH, _VERSION, 0, self._client.client_id)
            self._shape = shape = FetchShape(header, self._request(fetch))
            self._shape_epoch = epoch
        return shape

    def _send_with_shape(
        self, shape: FetchShape, fetch: FollowerFetch, on_answer: OnAnswer
    ) -> None:
        [row] = fetch.rows

        def make(correlation_id: int) -> bytes:
            return shape.request(
                correlation_id, fetch.session_epoch, row.topic_id, row.topic_partition.partition,
                row.current_leader_epoch, row.fetch_offset, row.last_fetched_epoch,
                row.log_start_offset, row.max_bytes,
            )  # fmt: skip

        self._client.call_frame(make, partial(_read, shape), on_answer)

    def _request(self, fetch: FollowerFetch) -> FetchRequest:
        topics: dict[str, FetchTopic] = {}
        for row in fetch.rows:
            name, index = row.topic_partition
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = FetchTopic(topic=name, topic_id=row.topic_id, partitions=[])
            topic.partitions.append(
                FetchPartition(
                    partition=index,
                    current_leader_epoch=row.current_leader_epoch,
                    fetch_offset=row.fetch_offset,
                    last_fetched_epoch=row.last_fetched_epoch,
                    log_start_offset=row.log_start_offset,
                    partition_max_bytes=row.max_bytes,
                )
            )
        return FetchRequest(
            replica_id=self._broker_id,
            replica_state=ReplicaState(
                replica_id=self._broker_id, replica_epoch=self._broker_epoch()
            ),
            max_wait_ms=self._max_wait_ms,
            min_bytes=self._min_bytes,
            max_bytes=self._max_bytes,
            session_id=fetch.session_id,
            session_epoch=fetch.session_epoch,
            topics=list(topics.values()),
            forgotten_topics_data=[
                ForgottenTopic(topic=key.topic, topic_id=topic_id, partitions=[key.partition])
                for key, topic_id in fetch.forgotten
            ],
        )


def _read(shape: FetchShape, frame: memoryview) -> ResponseRow | FetchResponse:
    return shape.match_response(frame) or decode_response(FetchResponse, _VERSION, frame)[1]


def to_leader_answer(fetch: FollowerFetch, outcome: ResponseRow | FetchResponse) -> LeaderAnswer:
    """A leader's answer to a fetch."""
    if isinstance(outcome, ResponseRow):
        key = TopicPartition(_name(fetch, outcome.topic_id), outcome.partition)
        row = LeaderRow(
            key, 0, outcome.high_watermark, outcome.log_start_offset, None, outcome.records
        )
        return LeaderAnswer(0, fetch.session_id, [row])
    names = {row.topic_id: key.topic for key, row in fetch.requested.items()}
    rows = []
    for topic in outcome.responses:
        name = names.get(topic.topic_id) if fetch.uses_topic_ids else topic.topic
        if name is not None:
            rows += [_leader_row(TopicPartition(name, p.partition_index), p)
                     for p in topic.partitions]  # fmt: skip
    return LeaderAnswer(outcome.error_code, outcome.session_id, rows)


def _name(fetch: FollowerFetch, topic_id: bytes) -> str:
    """The name of a requested topic; empty if the topic was not requested."""
    for row in fetch.rows:
        if row.topic_id == topic_id:
            return row.topic_partition.topic
    return next((key.topic for key, row in fetch.requested.items() if row.topic_id == topic_id), "")


def _leader_row(topic_partition: TopicPartition, row: Any) -> LeaderRow:
    diverging = row.diverging_epoch
    return LeaderRow(
        topic_partition,
        row.error_code,
        row.high_watermark,
        row.log_start_offset,
        (diverging.epoch, diverging.end_offset) if diverging.end_offset >= 0 else None,
        row.records if row.records is not None else b"",
    )
