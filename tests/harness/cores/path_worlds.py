"""Two worlds with the same events: one whose broker has fast paths, and one whose has none.

A `World` is a broker's parts, its clients and followers; a `Step` changes it. `observed` is the
state that clients, disks and operators can see. It must always be equal in the two worlds.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import pytest

from kafkapy.common.cluster_state import StopReplicaCommand, StopReplicaPartition
from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure
from kafkapy.coordinator.transactions.messages import PartitionsResult
from kafkapy.metadata.acl_authorizer import AclAuthorizer
from kafkapy.metadata.client_quotas import QuotaKind
from kafkapy.protocol.framing import ReceiveBuffers
from kafkapy.protocol.headers import decode_response, encode_request
from kafkapy.protocol.messages.fetch import FetchResponse
from kafkapy.protocol.schema import Message
from kafkapy.protocol.server_connection import ServerConnection
from kafkapy.record.control import end_transaction_marker
from kafkapy.replication.partition import Partition
from kafkapy.security.acls import (
    CLUSTER_NAME,
    AccessControlEntry,
    Operation,
    PatternType,
    Permission,
    ResourceKind,
    ResourcePattern,
)
from kafkapy.server.network.connection import Connection
from kafkapy.server.network.connection_table import ConnectionTable
from kafkapy.storage.log_append import AppendOrigin
from kafkapy.storage.unified_log import UnifiedLog
from tests.harness.cores.server_parts import Parts
from tests.harness.cores.znodes import run
from tests.harness.scripted.transports import FakeTransport
from tests.harness.storage.partitions import partition_state

TOPIC_BYTES_MAX: Final = 400
TOPICS: Final = {"t": 2, "u": 1}
PRINCIPALS: Final = ("User:a", "User:b")
FOLLOWERS: Final = (2, 3)


class Client:
    """One connection and its answers."""

    def __init__(self, world: World, principal: str) -> None:
        self.world = world
        self.principal = principal
        self.correlation_id = 0
        self.answered: list[bytes] = []
        self.open()

    def open(self) -> None:
        """Connect, or connect again after the broker has closed the connection."""
        parts = self.world.parts
        self.transport = FakeTransport()
        self.connection = Connection(
            "PLAINTEXT",
            self.world.dispatcher,
            ConnectionTable(parts.config),
            ServerConnection(1 << 20, ReceiveBuffers(1 << 20)),
            parts.clock.monotonic_ms,
        )
        self.connection.connection_made(self.transport)
        self.connection.principal = self.principal

    def send(self, version: int, message: Message, client_id: str = "me") -> None:
        self.correlation_id += 1
        self.receive(encode_request(message, version, self.correlation_id, client_id))

    def receive(self, data: bytes) -> None:
        if self.transport.is_closing():
            self.connection.connection_lost(None)
            self.open()
        self.connection.get_buffer(-1)[: len(data)] = data
        self.world.catching(lambda: self.connection.buffer_updated(len(data)))

    def disconnect(self) -> None:
        """Close the connection, and open another."""
        if not self.transport.closing:
            self.transport.closing = True
            self.world.catching(lambda: self.connection.connection_lost(None))
            self.open()

    def collect(self) -> list[bytes]:
        """The complete answers since the last call."""
        sent, self.transport.sent = self.transport.sent, b""
        found = []
        while sent:
            size = 4 + int.from_bytes(sent[:4], "big")
            found.append(sent[:size])
            sent = sent[size:]
        return found


class Follower:
    """A follower's connection and fetch session, and its positions in `t`'s partitions."""

    def __init__(self, client: Client, broker_id: int) -> None:
        self.client = client
        self.broker_id = broker_id
        self.session = (0, 0)
        self.offsets = [0, 0]
        self.epochs = [-1, -1]
        self.version = 17

    def disconnect(self) -> None:
        """Close the connection. The old session still exists, but the follower begins a new one."""
        self.client.disconnect()
        self.session = (0, 0)

    def take(self, answer: bytes) -> None:
        """Append the records of an answer, as a follower does."""
        _, response = decode_response(FetchResponse, self.version, answer[4:])
        if response.error_code:
            self.session = (0, 0)
            return
        if response.session_id and self.session[0] != response.session_id:
            self.session = (response.session_id, 1)
        for topic in response.responses:
            for row in topic.partitions:
                if row.error_code == 0 and row.records:
                    last = bytes(row.records)
                    self.offsets[row.partition_index] = _end_offset(last)
                    self.epochs[row.partition_index] = int.from_bytes(last[12:16], "big")


def _end_offset(records: bytes) -> int:
    """The offset after the first batch: a follower need not append all batches."""
    return int.from_bytes(records[:8], "big") + int.from_bytes(records[23:27], "big") + 1


class World:
    """Broker 1's parts, two clients, two followers. `fault` is raised by the next append."""

    def __init__(
        self, directory: Path, *, fast: bool, has_authorizer: bool, verifies: bool
    ) -> None:
        self.fault: Callable[[Any], Exception] | None = None
        self.exceptions: list[str] = []
        self.has_authorizer = has_authorizer
        properties = {} if verifies else {"transaction.partition.verification.enable": "false"}
        self.parts = Parts(directory / "a", directory / "b", properties=properties)
        self.parts.replicas.on_fatal = lambda _: None
        self.epochs = dict.fromkeys(TOPICS, 0)
        if has_authorizer:
            self.authorizer = self.parts.authorizer = AclAuthorizer(["User:super"])
            self.allow("User:follower", CLUSTER_NAME, Operation.CLUSTER_ACTION)
            for principal in PRINCIPALS:
                self.allow(principal, "x", Operation.WRITE)
                for topic in TOPICS:
                    self.allow(principal, topic, Operation.WRITE)
        self.coordinator_error = ErrorCode.NONE
        self.pending_answers: list[Callable[[], None]] = []
        self.parts.verifier._request = self._ask  # type: ignore[method-assign]
        self.dispatcher = self.parts.dispatcher()
        if not fast:
            self.dispatcher._prepare_fast_path = lambda *_: None  # type: ignore[method-assign]
        for topic in TOPICS:
            self.lead(topic)
        self.parts.announce("t")
        self.clients = [Client(self, principal) for principal in PRINCIPALS]
        self.others = Client(self, "User:super")
        self.followers = [Follower(Client(self, "User:follower"), each) for each in FOLLOWERS]

    def _ask(self, question: Any, answered: Callable[[PartitionsResult], None]) -> None:
        """Answer in the place of the transaction coordinator."""
        error = self.coordinator_error
        result = PartitionsResult(errors=dict.fromkeys(question.partitions, error) if error else {})
        if error is ErrorCode.CONCURRENT_TRANSACTIONS:
            self.pending_answers.append(lambda: answered(result))
        else:
            answered(result)

    def catching(self, work: Callable[[], object]) -> None:
        """Run `work`, and record an exception: in an event loop, the client would get no answer."""
        try:
            with _inside(self):
                work()
        except Exception as fault:
            self.exceptions.append(repr(fault))

    def lead(self, topic: str, **state: Any) -> None:
        epoch = self.epochs[topic] = self.epochs[topic] + 1
        rows = [
            partition_state(topic=topic, partition=index, leader_epoch=epoch, partition_epoch=epoch,
                 **{"isr": (1, *FOLLOWERS) if topic == "t" else (1,), **state})
            for index in range(TOPICS[topic])
        ]  # fmt: skip
        self.catching(
            lambda: self.parts.apply_leader_and_isr(*rows, max_message_bytes=str(TOPIC_BYTES_MAX))
        )

    def require_in_sync(self, count: int) -> None:
        """Set `min.insync.replicas` of the existing partitions."""
        for partition in self.parts.replicas.all_partitions():
            log = partition.log
            log.update_config(replace(log.config, min_insync_replicas=count))

    def partition(self, topic: str, index: int) -> Partition | None:
        return self.parts.replicas.partitions.get(topic, {}).get(index)

    def allow(self, principal: str, name: str, *operations: Operation) -> None:
        """Allow `principal` only these operations on a topic, a transactional id or the cluster."""
        kinds = {CLUSTER_NAME: ResourceKind.CLUSTER, "x": ResourceKind.TRANSACTIONAL_ID}
        resource = ResourcePattern(kinds.get(name, ResourceKind.TOPIC), name, PatternType.LITERAL)
        others = {e for e in self.authorizer.acls.get(resource, ()) if e.principal != principal}
        new = {AccessControlEntry(principal, "*", each, Permission.ALLOW) for each in operations}
        self.authorizer.update(resource, others | new)

    def end_transaction(self, index: int) -> None:
        batch = end_transaction_marker(
            commit=True, producer_id=7, producer_epoch=0, coordinator_epoch=1,
            timestamp=self.parts.clock.time_ms(),
        )  # fmt: skip
        with contextlib.suppress(ApiError):
            self.parts.replicas.append("t", index, batch, 1, 9, AppendOrigin.COORDINATOR)

    def settle(self) -> None:
        """Clients and followers process the answers since the last call."""
        for client in (*self.clients, self.others):
            client.answered += client.collect()
        for follower in self.followers:
            answers = follower.client.collect()
            follower.client.answered += answers
            for answer in answers:
                follower.take(answer)

    def observed(self) -> dict[str, Any]:
        """The visible state of this broker, except times."""
        everyone = [*self.clients, self.others, *(each.client for each in self.followers)]
        self.settle()
        answers = [client.answered for client in everyone]
        for client in everyone:
            client.answered = []
        parts, replicas = self.parts, self.parts.replicas
        parked = (replicas.produce_purgatory, replicas.fetch_purgatory)
        return {
            "answers": answers,
            "closed": [client.transport.is_closing() for client in everyone],
            "escaped": self.exceptions,
            "partitions": {
                p.topic_partition: _observed_partition(p) for p in replicas.all_partitions()
            },
            "offline": replicas.offline,
            "metrics": {
                topic: {name: getattr(counters, name) for name in counters.__slots__}
                for topic, counters in parts.metrics.topics.items()
            },
            "requests": {
                name: times.count for name, times in parts.metrics.requests.by_name.items()
                if times.count
            },
            "parked": [len(each) for each in parked],
            "sessions": [
                (session.session_id, session.epoch, session.last_used_ms, list(session.partitions))
                for session in parts.fetch_sessions._sessions.values()
            ],
            "timers": self.parts.timers.delays_s,
            "charged": {
                kind: [(tags, usage.rate.rate(parts.clock.now_ms))
                       for tags, usage in parts.client_quotas.by_kind[kind].items()]
                for kind in (QuotaKind.PRODUCE, QuotaKind.FETCH)
            },
        }  # fmt: skip


def _observed_partition(partition: Partition) -> dict[str, Any]:
    log = partition.log
    return {
        "bytes": b"".join(
            path.read_bytes() for path in sorted(Path(log.directory).glob("*.log"))
        ),
        "offsets": (log.log_start_offset, log.high_watermark, log.last_stable_offset,
                    log.log_end_offset),
        "followers": [
            [getattr(replica, name) for name in type(replica).__slots__]
            for replica in partition.remote_replicas.values()
        ],
        "isr": (partition.isr, partition.in_sync.pending),
        "verified": dict.fromkeys(log.producers.verification._by_producer),
    }  # fmt: skip


_append = UnifiedLog.append_as_leader


@contextlib.contextmanager
def _inside(world: World) -> Iterator[None]:
    """Make the next append fail with `world.fault`; "the running loop" has the world's timers."""

    def append(log: UnifiedLog, *args: Any, **named: Any) -> Any:
        fault, world.fault = world.fault, None
        if fault is None or fault is has_late_fault:
            info = _append(log, *args, **named)
        if fault is None:
            return info
        raise fault(log)

    loop = SimpleNamespace(call_later=world.parts.timers.call_later)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(UnifiedLog, "append_as_leader", append)
        patch.setattr(asyncio, "get_running_loop", lambda: loop)
        yield


def disk_fails(log: Any) -> Exception:
    return LogDirFailure(log.log_dir, "No space left on device")


def has_fault(log: Any) -> Exception:
    return RuntimeError("a fault of ours")


def has_late_fault(log: Any) -> Exception:
    """A fault after the record was appended to the log."""
    return RuntimeError("a fault of ours")


class Step(NamedTuple):
    """One event of a world; `description` describes it in a failure's report."""

    description: str
    apply: Callable[[World], None]

    def __repr__(self) -> str:
        return self.description


def delete(world: World, topic: str) -> None:
    rows = [StopReplicaPartition(topic, index, -2, True) for index in range(TOPICS[topic])]
    command = StopReplicaCommand(1, 1, 1, rows)
    world.catching(lambda: run(world.parts.replicas.stop_replicas(command)))
