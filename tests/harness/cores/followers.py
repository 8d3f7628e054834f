"""A follower's connection to a leader's parts, without a socket: its fetches and their answers."""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.protocol.headers import decode_response
from kafkapy.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from tests.harness.cores.hot_path import Client
from tests.harness.cores.server_parts import Parts
from tests.harness.storage.partitions import TOPIC_ID


class Follower:
    """Broker `broker_id`, which follows the first partitions of topic `t` in one session.

    `offsets` and `last_epochs` are those of its fetches; `session` is (id, next epoch);
    `general_requests` counts the requests that the dispatcher handled.
    """

    def __init__(self, parts: Parts, broker_id: int = 2, partitions: int = 1) -> None:
        self.client = Client(parts)
        self.broker_id = broker_id
        self.offsets = [0] * partitions
        self.last_epochs = [-1] * partitions
        self.leader_epoch = 0
        self.session = (0, 0)
        self.general_requests = 0
        self.version = 17
        dispatcher = self.client.connection._dispatcher
        dispatch = dispatcher.dispatch

        def counted(*args):  # type: ignore[no-untyped-def]
            self.general_requests += 1
            return dispatch(*args)

        dispatcher.dispatch = counted  # type: ignore[method-assign]

    def begin(self) -> None:
        """Create the session, after which the leader can answer on the fast path."""
        session_id = self.fetches(*range(len(self.offsets)), max_wait_ms=0).session_id
        assert session_id > 0
        self.session = (session_id, 1)

    def request(
        self, *named: int, max_wait_ms: int = 500, max_bytes: int = 1 << 20
    ) -> FetchRequest:
        """A fetch that names some partitions."""
        rows = [
            FetchPartition(
                partition=index,
                current_leader_epoch=self.leader_epoch,
                fetch_offset=self.offsets[index],
                last_fetched_epoch=self.last_epochs[index],
                log_start_offset=0,
                partition_max_bytes=max_bytes,
            )
            for index in named
        ]
        return FetchRequest(
            replica_state=ReplicaState(replica_id=self.broker_id, replica_epoch=1),
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            session_id=self.session[0],
            session_epoch=self.session[1],
            topics=[FetchTopic(topic_id=TOPIC_ID, partitions=rows)] if rows else [],
        )

    def send(self, *named: int, **terms: int) -> None:
        """Send a fetch. `answer` returns its response, once there is one."""
        self.prepare(*named, **terms)()

    def prepare(self, *named: int, **terms: int) -> Callable[[], None]:
        """A fetch that is sent later, encoded now."""
        send = self.client.sends(self.version, self.request(*named, **terms))
        self.session = (self.session[0], self.session[1] + 1)
        return send

    def has(self, index: int, end_offset: int, last_epoch: int = 0) -> None:
        """Set the end of the follower's log of a partition."""
        self.offsets[index], self.last_epochs[index] = end_offset, last_epoch

    def answer(self) -> FetchResponse | None:
        """The response received since the last call, or None."""
        sent, self.client.transport.sent = self.client.transport.sent, b""
        if not sent:
            return None
        assert int.from_bytes(sent[:4], "big") == len(sent) - 4
        return decode_response(FetchResponse, self.version, sent[4:])[1]

    def fetches(self, *named: int, **terms: int) -> FetchResponse:
        """Send a fetch, and return its answer, which must come at once."""
        self.send(*named, **terms)
        found = self.answer()
        assert found is not None
        assert found.error_code == 0
        return found

    def row(self) -> PartitionData:
        """The only row of the response that was received since the last call."""
        found = self.answer()
        assert found is not None
        [topic] = found.responses
        [row] = topic.partitions
        return row
