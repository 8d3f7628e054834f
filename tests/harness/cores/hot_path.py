"""One connection without a socket, and requests for it, to count a broker's work for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kafkapy.protocol.framing import ReceiveBuffers
from kafkapy.protocol.headers import decode_response, encode_request
from kafkapy.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from kafkapy.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kafkapy.protocol.schema import Message
from kafkapy.protocol.server_connection import ServerConnection
from kafkapy.server.network.connection import FRAMES_A_TURN, Connection
from kafkapy.server.network.connection_table import ConnectionTable
from tests.harness.cores.ports import NOW_MS
from tests.harness.cores.server_parts import Parts
from tests.harness.scripted.transports import FakeTransport
from tests.harness.storage.partitions import batch

PRODUCE, FETCH = 9, 12

R = TypeVar("R", bound=Message)


class Client:
    """One connection without a socket."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.transport = FakeTransport()
        self.connection = Connection(
            "PLAINTEXT",
            parts.dispatcher(),
            ConnectionTable(parts.config),
            ServerConnection(1 << 20, ReceiveBuffers(1 << 20)),
            parts.clock.monotonic_ms,
        )
        self.connection.connection_made(self.transport)

    def sends(self, version: int, *messages: Message) -> Callable[[], None]:
        """A function that delivers these requests, encoded now, to the connection: at each read as
        many as are handled in one turn."""
        frames = [encode_request(message, version, 0, "me") for message in messages]
        reads = [
            b"".join(frames[first : first + FRAMES_A_TURN])
            for first in range(0, len(frames), FRAMES_A_TURN)
        ]

        def send() -> None:
            for data in reads:
                self.connection.get_buffer(-1)[: len(data)] = data
                self.connection.buffer_updated(len(data))

        return send

    def asks(self, version: int, message: Message, kind: type[R]) -> R:
        """Send a request that is answered at once. Returns the answer."""
        self.transport.sent = b""
        self.sends(version, message)()
        return decode_response(kind, version, self.transport.sent[4:])[1]

    def fetches(self, message: FetchRequest) -> FetchResponse:
        answer = self.asks(FETCH, message, FetchResponse)
        assert answer.error_code == 0
        return answer


def produce(*topics: str, acks: int = -1) -> ProduceRequest:
    row = PartitionProduceData(index=0, records=batch(1, NOW_MS))
    data = [TopicProduceData(name=topic, partition_data=[row]) for topic in topics]
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=data)


def fetch(
    partitions: int = 1,
    offset: int = 0,
    session: tuple[int, int] = (0, -1),
    max_wait_ms: int = 0,
    replica_id: int = -1,
) -> FetchRequest:
    rows = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1)
        for index in range(partitions)
    ]
    topics = [FetchTopic(topic="t", partitions=rows)] if rows else []
    return FetchRequest(
        replica_id=replica_id,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        session_id=session[0],
        session_epoch=session[1],
        topics=topics,
    )
