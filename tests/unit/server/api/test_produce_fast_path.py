"""The fast path gives the answers of the long one, and leaves it what is not plain."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.uuid import Uuid
from kafkapy.metadata.acl_authorizer import AclAuthorizer
from kafkapy.protocol.framing import ReceiveBuffers
from kafkapy.protocol.headers import decode_response, encode_request
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest
from kafkapy.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kafkapy.protocol.produce_shape import ProduceShape
from kafkapy.protocol.server_connection import ServerConnection
from kafkapy.replication.partition import Partition
from kafkapy.security.acls import (
    AccessControlEntry,
    Operation,
    PatternType,
    Permission,
    ResourceKind,
    ResourcePattern,
)
from kafkapy.server.network.connection import Connection
from kafkapy.server.network.connection_table import ConnectionTable
from kafkapy.storage.unified_log import UnifiedLog
from tests.harness.cores.ports import NOW_MS
from tests.harness.cores.server_parts import Parts
from tests.harness.scripted.transports import FakeTransport
from tests.harness.storage.batches import patched
from tests.harness.storage.partitions import TOPIC_ID, batch

NONE = ErrorCode.NONE


class Producer:
    """One connection that produces; `general_requests` counts those on the general path."""

    def __init__(self, parts: Parts, monkeypatch: pytest.MonkeyPatch, version: int = 9) -> None:
        self.version = version
        self.transport = FakeTransport()
        self.general_requests = 0
        dispatcher = parts.dispatcher()
        dispatch = dispatcher.dispatch

        def counted(*args):  # type: ignore[no-untyped-def]
            self.general_requests += 1
            return dispatch(*args)

        monkeypatch.setattr(dispatcher, "dispatch", counted)
        self.connection = Connection(
            "PLAINTEXT",
            dispatcher,
            ConnectionTable(parts.config),
            ServerConnection(1 << 20, ReceiveBuffers(1 << 20)),
            parts.clock.monotonic_ms,
        )
        self.connection.connection_made(self.transport)

    def send(self, *messages: ProduceRequest) -> list[PartitionProduceResponse]:
        """The rows that answer requests sent together, numbered from 0."""
        self.put(*messages)
        return self.answers(len(messages))

    def put(self, *messages: ProduceRequest) -> None:
        """Send requests together, numbered from 0."""
        data = b"".join(
            encode_request(message, self.version, number, "me")
            for number, message in enumerate(messages)
        )
        self.connection.get_buffer(-1)[: len(data)] = data
        self.connection.buffer_updated(len(data))

    def answers(self, count: int) -> list[PartitionProduceResponse]:
        """The rows of all that was answered since: answers numbered from 0 to `count`."""
        sent, self.transport.sent = self.transport.sent, b""
        rows = []
        for number in range(count):
            size = int.from_bytes(sent[:4], "big")
            correlation_id, answer = decode_response(ProduceResponse, self.version, sent[4:][:size])
            assert correlation_id == number
            rows += [row for topic in answer.responses for row in topic.partition_responses]
            sent = sent[4 + size :]
        assert sent == b""
        return rows


def request(
    index: int = 0,
    records: bytes | None = None,
    topic: str = "t",
    acks: int = -1,
    topic_id: Uuid = TOPIC_ID,
) -> ProduceRequest:
    row = PartitionProduceData(index=index, records=records or batch(2, NOW_MS))
    topics = [TopicProduceData(name=topic, topic_id=topic_id, partition_data=[row])]
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=topics)


def sequenced(sequence: int) -> ProduceRequest:
    return request(
        records=patched(batch(1, NOW_MS), producer_id=7, producer_epoch=0, base_sequence=sequence)
    )


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    parts = Parts(tmp_path)
    parts.lead()
    return parts


@pytest.fixture
def producer(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> Producer:
    return Producer(parts, monkeypatch)


@pytest.mark.parametrize("version", [3, 7, 9, 11, 13])
def test_the_third_request_is_answered_as_the_first(
    parts: Parts, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    parts.announce("t")
    producer = Producer(parts, monkeypatch, version)
    rows = producer.send(*[request() for _ in range(4)])
    expected = [PartitionProduceResponse(base_offset=2 * n) for n in range(4)]
    for row in expected:
        row.log_start_offset = 0 if version >= 5 else -1
    assert rows == expected
    assert producer.general_requests == (4 if version < 5 else 2)
    log = parts.replicas.partitions["t"][0].log
    assert (log.log_end_offset, log.high_watermark) == (8, 8)
    counters = parts.metrics.topics["t"]
    assert (counters.produces, counters.messages_in) == (4, 8)
    assert parts.metrics.requests.by_name["Produce"].count == 4


def test_a_topic_that_is_created_anew_gets_no_records_of_the_old_one(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither with the old id, which is in the shape of the connection, nor before the replica
    knows the new one."""
    parts.announce("t")
    producer = Producer(parts, monkeypatch, 13)
    producer.send(*[request() for _ in range(3)])
    new = Uuid(bytes([9] * 16))
    parts.announce("t", topic_id=new)
    rows = producer.send(request(), request(topic_id=new), request())
    assert [row.error_code for row in rows] == [ErrorCode.UNKNOWN_TOPIC_ID] * 3
    assert [row.base_offset for row in rows] == [-1] * 3
    assert parts.replicas.partitions["t"][0].log.log_end_offset == 6


def test_partitions_of_a_topic_share_the_way(parts: Parts, producer: Producer) -> None:
    parts.lead(index=1)
    rows = producer.send(*[request(index) for index in (0, 1, 1, 0, 1)])
    assert [(row.index, row.base_offset) for row in rows] == [
        (0, 0),
        (1, 0),
        (1, 2),
        (0, 2),
        (1, 4),
    ]
    assert producer.general_requests == 2


def test_what_is_refused_is_refused_as_ever(parts: Parts, producer: Producer) -> None:
    producer.send(*[request() for _ in range(3)])
    crc_error = patched(batch(1, NOW_MS), crc=1)
    rows = producer.send(request(9), request(records=crc_error), request(records=b"x"), request())
    assert [row.error_code for row in rows] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_RECORD,
        NONE,
    ]
    assert rows[1].error_message
    assert [row.base_offset for row in rows] == [-1, -1, -1, 6]


def test_sequences_hold_on_the_fast_path(producer: Producer) -> None:
    rows = producer.send(*[sequenced(n) for n in (0, 1, 2, 2, 4, 3)])
    assert [row.error_code for row in rows] == [
        NONE, NONE, NONE, NONE, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, NONE
    ]  # fmt: skip
    assert [row.base_offset for row in rows] == [0, 1, 2, 2, -1, 3]


def test_a_partition_that_moved_away_is_not_written(parts: Parts, producer: Producer) -> None:
    producer.send(*[request() for _ in range(3)])
    parts.lead(isr=(1, 2), leader=2, leader_epoch=1, partition_epoch=1)
    [row] = producer.send(request())
    assert row.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert parts.replicas.partitions["t"][0].log.log_end_offset == 6


@pytest.fixture
def replicated(parts: Parts) -> Partition:
    return parts.lead(isr=(1, 2), leader_epoch=1, partition_epoch=1)


def test_acks_all_waits_for_followers(
    parts: Parts, producer: Producer, replicated: Partition
) -> None:
    """Answered in order as far as the follower has come, first on the general path."""
    producer.put(*[request() for _ in range(4)])
    assert producer.transport.sent == b""
    assert producer.general_requests == 2
    parts.fetch_as_follower(replicated, 6)
    rows = producer.answers(3)
    assert [(row.error_code, row.base_offset) for row in rows] == [(NONE, 0), (NONE, 2), (NONE, 4)]
    parts.fetch_as_follower(replicated, 8)
    assert producer.transport.sent
    assert len(parts.replicas.produce_purgatory) == 0


def test_what_waits_too_long_times_out(
    parts: Parts, producer: Producer, replicated: Partition
) -> None:
    producer.put(*[request() for _ in range(3)])
    parts.clock.now_ms += 30_000
    parts.timers.fire()
    rows = producer.answers(3)
    assert {(row.error_code, row.base_offset) for row in rows} == {
        (ErrorCode.REQUEST_TIMED_OUT, -1)
    }
    assert [row == rows[0] for row in rows] == [True] * 3


def test_what_waits_when_another_broker_leads_is_refused(
    parts: Parts, producer: Producer, replicated: Partition
) -> None:
    producer.put(*[request() for _ in range(3)])
    parts.lead(isr=(1, 2), leader=2, leader_epoch=2, partition_epoch=2)
    rows = producer.answers(3)
    assert {row.error_code for row in rows} == {ErrorCode.NOT_LEADER_OR_FOLLOWER}


def test_too_few_in_sync_is_refused_as_ever(parts: Parts, producer: Producer) -> None:
    producer.send(*[sequenced(n) for n in range(3)])
    partition = parts.lead(isr=(1,), replicas=(1, 2), leader_epoch=1, partition_epoch=1)
    partition.log.config = replace(partition.log.config, min_insync_replicas=2)
    rows = producer.send(*[sequenced(n) for n in (3, 4)])
    assert [row.error_code for row in rows] == [ErrorCode.NOT_ENOUGH_REPLICAS] * 2
    assert partition.log.log_end_offset == 3
    parts.lead(isr=(1, 2), leader_epoch=2, partition_epoch=2)
    producer.put(sequenced(4), sequenced(3), sequenced(4))
    parts.fetch_as_follower(partition, 5)
    rows = producer.answers(3)
    assert [row.error_code for row in rows] == [ErrorCode.NOT_ENOUGH_REPLICAS, NONE, NONE]


def test_who_hangs_up_is_not_waited_for(
    parts: Parts, producer: Producer, replicated: Partition
) -> None:
    producer.put(*[request() for _ in range(3)])
    assert len(parts.replicas.produce_purgatory) == 3
    producer.connection.connection_lost(None)
    assert len(parts.replicas.produce_purgatory) == 0


def test_acks_1_waits_for_nobody(parts: Parts, producer: Producer) -> None:
    parts.lead(isr=(1, 2), leader_epoch=1, partition_epoch=1)
    rows = producer.send(*[request(acks=1) for _ in range(3)])
    assert [row.base_offset for row in rows] == [0, 2, 4]
    assert producer.general_requests == 2


def test_acks_0_has_no_answer(parts: Parts, producer: Producer) -> None:
    producer.put(*[request(acks=0) for _ in range(4)])
    assert producer.transport.sent == b""
    assert producer.general_requests == 2
    assert parts.replicas.partitions["t"][0].log.log_end_offset == 8
    assert producer.send(request())[0].base_offset == 8


def test_acks_0_that_is_refused_ends_the_connection(parts: Parts, producer: Producer) -> None:
    producer.put(*[request(acks=0) for _ in range(3)])
    parts.lead(isr=(1, 2), leader=2, leader_epoch=1, partition_epoch=1)
    producer.put(request(acks=0))
    assert producer.transport.is_closing()


def test_unknown_acks_are_refused_however_often(parts: Parts, producer: Producer) -> None:
    rows = producer.send(*[request(acks=2) for _ in range(4)])
    assert {row.error_code for row in rows} == {ErrorCode.INVALID_REQUIRED_ACKS}
    assert parts.replicas.partitions["t"][0].log.log_end_offset == 0


def test_other_requests_and_topics_come_between(parts: Parts, producer: Producer) -> None:
    parts.lead("u")
    topics = ["t", "t", "t", "u", "t", "u", "u", "u", "t"]
    rows = producer.send(*[request(topic=topic) for topic in topics])
    assert [row.error_code for row in rows] == [NONE] * len(topics)
    ends = {name: parts.replicas.partitions[name][0].log.log_end_offset for name in ("t", "u")}
    assert ends == {"t": 10, "u": 8}
    data = encode_request(HeartbeatRequest(group_id="g"), 4, 0, "me")
    producer.connection.get_buffer(-1)[: len(data)] = data
    producer.connection.buffer_updated(len(data))
    assert producer.transport.sent


# what differed from the general path


def transactional(sequence: int, transactional_id: str | None = None) -> ProduceRequest:
    message = request(
        records=patched(
            batch(1, NOW_MS), attributes=0x10, producer_id=7, producer_epoch=0,
            base_sequence=sequence,
        )
    )  # fmt: skip
    message.transactional_id = transactional_id
    return message


@pytest.mark.parametrize("verifies", ["true", "false"])
def test_a_transactional_batch_without_a_transactional_id_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verifies: str
) -> None:
    parts = Parts(tmp_path, properties={"transaction.partition.verification.enable": verifies})
    parts.lead()
    producer = Producer(parts, monkeypatch)
    producer.send(*[request() for _ in range(3)])
    [row] = producer.send(transactional(0))
    assert row.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert parts.replicas.partitions["t"][0].log.log_end_offset == 6


def test_a_fault_is_answered_and_ends_nothing(
    parts: Parts, producer: Producer, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer.send(*[request() for _ in range(3)])
    general = producer.general_requests

    def fails(*args: object) -> None:
        raise RuntimeError("a fault of ours")

    with monkeypatch.context() as patch:
        patch.setattr(UnifiedLog, "append_as_leader", fails)
        [row] = producer.send(request())
        assert row.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    with monkeypatch.context() as patch:
        patch.setattr(ProduceShape, "match", fails)
        [row] = producer.send(request())
        assert row.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    [row] = producer.send(request())
    assert (row.error_code, row.base_offset) == (NONE, 6)
    assert producer.general_requests == general
    assert parts.metrics.requests.by_name["Produce"].count == 6


# under an authorizer, and quotas of others

TOPIC = ResourcePattern(ResourceKind.TOPIC, "t", PatternType.LITERAL)


def test_acls_are_asked_once_and_when_they_change(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def allow(*principals: str) -> None:
        entries = [
            AccessControlEntry(each, "*", Operation.WRITE, Permission.ALLOW) for each in principals
        ]
        authorizer.update(TOPIC, entries)

    authorizer = parts.authorizer = AclAuthorizer()
    allow("User:ANONYMOUS")
    producer = Producer(parts, monkeypatch)
    producer.send(*[request() for _ in range(2)])
    asked = []
    is_allowed = authorizer.is_allowed
    monkeypatch.setattr(
        authorizer, "is_allowed", lambda *needed: asked.append(needed) or is_allowed(*needed)
    )
    producer.send(*[request() for _ in range(5)])
    assert len(asked) == 1
    allow()
    [row] = producer.send(request())
    assert row.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    allow("User:ANONYMOUS")
    assert producer.send(request())[0].error_code == NONE
    producer.connection.principal = "User:other"  # a renewed login
    [row] = producer.send(request())
    assert row.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert producer.general_requests == 4
    assert parts.replicas.partitions["t"][0].log.log_end_offset == 16


def test_a_transactional_id_needs_its_own_right(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    authorizer = parts.authorizer = AclAuthorizer()
    entry = AccessControlEntry("User:ANONYMOUS", "*", Operation.WRITE, Permission.ALLOW)
    its_id = ResourcePattern(ResourceKind.TRANSACTIONAL_ID, "x", PatternType.LITERAL)
    authorizer.update(TOPIC, [entry])
    authorizer.update(its_id, [entry])
    producer = Producer(parts, monkeypatch)
    plain = [request() for _ in range(4)]
    for each in plain:
        each.transactional_id = "x"
    assert {row.error_code for row in producer.send(*plain)} == {NONE}
    assert producer.general_requests == 2
    authorizer.update(its_id, [])
    [row] = producer.send(plain[0])
    assert row.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_only_a_quota_of_its_time_is_a_reason_to_leave_the_fast_path(
    parts: Parts, producer: Producer
) -> None:
    quotas = parts.client_quotas
    producer.send(*[request() for _ in range(2)])
    quotas.update("users", "other", {"producer_byte_rate": "1"})
    quotas.update("users", "ANONYMOUS", {"consumer_byte_rate": "1"})
    producer.send(*[request() for _ in range(3)])
    assert producer.general_requests == 2
    quotas.update("clients", "me", {"producer_byte_rate": "1000000"})
    producer.send(request())
    assert producer.general_requests == 2
    quotas.update("clients", "me", {"request_percentage": "1000000"})
    producer.send(request())
    assert producer.general_requests == 3
