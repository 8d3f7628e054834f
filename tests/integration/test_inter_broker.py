"""The controller's commands and the brokers' requests to it, in every version, over a socket.

The tests play another broker of the cluster to a live one: a controller that is of date or out of
date, a leader that wants its ISR changed, a broker that wants to stop.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.uuid import ZERO_UUID, Uuid
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.headers import decode_response, encode_request
from kafkapy.protocol.messages import (
    alter_partition,
    controlled_shutdown,
    create_topics,
    leader_and_isr,
    metadata,
    produce,
    response_class,
    stop_replica,
    update_metadata,
)
from kafkapy.protocol.schema import Message
from kafkapy.record.builder import RecordData, build_batch
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.raw_connection import RawConnection
from tests.harness.protocol.served_versions import each_version

BROKER = 0
TOPIC = "real"


class Epochs(NamedTuple):
    """Epochs of the broker's registration and of its controller."""

    broker: int
    controller: int


class Peer:
    """A connection to the broker, from what could be another one. `epochs` are those of now."""

    def __init__(self, process: BrokerProcess) -> None:
        self.process = process
        self.connection = RawConnection(process.bootstrap_servers)
        created = self.ask(
            create_topics.CreateTopicsRequest(
                topics=[
                    create_topics.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
                ],
                timeout_ms=10_000,
            ),
            7,
        )
        self.topic_id: Uuid = created.topics[0].topic_id
        self.epochs = Epochs(-1, -1)
        self.epochs = Epochs(self._lowest_taken("broker"), self._lowest_taken("controller"))

    def _lowest_taken(self, which: str) -> int:
        """Epochs below are stale: the first that is not is that of now."""
        stale = {
            "broker": ErrorCode.STALE_BROKER_EPOCH,
            "controller": ErrorCode.STALE_CONTROLLER_EPOCH,
        }[which]
        for epoch in count():
            epochs = Epochs(-1, 0)._replace(**{which: epoch})
            if self.ask(stopping([], epochs), 4).error_code != stale:
                return epoch
        raise AssertionError("not reached")

    def ask(self, request: Message, version: int) -> Any:
        return self.connection.request(request, version, response_class(request.API_KEY))

    def produce(self, topic: str) -> int:
        """The error code of a produce to partition 0."""
        row = produce.PartitionProduceData(
            index=0, records=build_batch([RecordData(b"k", b"v", 1, [])])
        )
        request = produce.ProduceRequest(
            acks=1,
            timeout_ms=10_000,
            topic_data=[produce.TopicProduceData(name=topic, partition_data=[row])],
        )
        code: int = self.ask(request, 9).responses[0].partition_responses[0].error_code
        return code

    def known(self) -> dict[str, Any]:
        """The topics of the broker's metadata by name."""
        request = metadata.MetadataRequest(topics=None)
        return {topic.name: topic for topic in self.ask(request, 9).topics}


@pytest.fixture(scope="module")
def peer(broker: BrokerProcess) -> Iterator[Peer]:
    made = Peer(broker)
    yield made
    made.connection.close()


def topic_id(name: str) -> Uuid:
    return Uuid(name.encode().ljust(16, b"."))


def leading(
    topic: str,
    epochs: Epochs,
    version: int = 7,
    leader_epoch: int = 0,
    replicas: tuple[int, ...] = (BROKER,),
) -> leader_and_isr.LeaderAndIsrRequest:
    """Lead partition 0 of a topic."""
    row = leader_and_isr.LeaderAndIsrPartitionState(
        topic_name=topic,
        controller_epoch=epochs.controller,
        leader=replicas[0],
        leader_epoch=leader_epoch,
        isr=list(replicas),
        partition_epoch=leader_epoch,
        replicas=list(replicas),
        is_new=True,
    )
    grouped = leader_and_isr.LeaderAndIsrTopicState(
        topic_name=topic, topic_id=topic_id(topic), partition_states=[row]
    )
    return leader_and_isr.LeaderAndIsrRequest(
        controller_id=BROKER,
        controller_epoch=epochs.controller,
        broker_epoch=epochs.broker,
        ungrouped_partition_states=[row] if version < 2 else [],
        topic_states=[grouped] if version >= 2 else [],
    )


def rows_of(response: leader_and_isr.LeaderAndIsrResponse, topic: str) -> list[int]:
    """The codes for a topic, by its name or its id."""
    old = [row.error_code for row in response.partition_errors if row.topic_name == topic]
    return old + [
        row.error_code
        for answered in response.topics
        if answered.topic_id == topic_id(topic)
        for row in answered.partition_errors
    ]


def stopping(
    topics: list[str], epochs: Epochs, version: int = 4, leader_epoch: int = -1
) -> stop_replica.StopReplicaRequest:
    """Delete partition 0 of topics."""
    request = stop_replica.StopReplicaRequest(
        controller_id=BROKER, controller_epoch=epochs.controller, broker_epoch=epochs.broker
    )
    for topic in topics:
        if version >= 3:
            row = stop_replica.StopReplicaPartitionState(
                partition_index=0, leader_epoch=leader_epoch, delete_partition=True
            )
            request.topic_states.append(
                stop_replica.StopReplicaTopicState(topic_name=topic, partition_states=[row])
            )
            continue
        request.delete_partitions = True
        if version >= 1:
            old = stop_replica.StopReplicaTopicV1(name=topic, partition_indexes=[0])
            request.topics.append(old)
        else:
            oldest = stop_replica.StopReplicaPartitionV0(topic_name=topic, partition_index=0)
            request.ungrouped_partitions.append(oldest)
    return request


def informing(
    peer: Peer, topic: str, epochs: Epochs, version: int, leader: int = BROKER
) -> update_metadata.UpdateMetadataRequest:
    """Partition 0 of a topic has a leader; this broker, where it is, is the only one."""
    row = update_metadata.UpdateMetadataPartitionState(
        topic_name=topic, leader=leader, isr=[BROKER], replicas=[BROKER]
    )
    grouped = update_metadata.UpdateMetadataTopicState(
        topic_name=topic, topic_id=topic_id(topic), partition_states=[row]
    )
    port = peer.process.port
    endpoint = update_metadata.UpdateMetadataEndpoint(
        host="127.0.0.1", port=port, listener="PLAINTEXT"
    )
    live = update_metadata.UpdateMetadataBroker(
        id=BROKER, v0_host="127.0.0.1", v0_port=port, endpoints=[endpoint]
    )
    return update_metadata.UpdateMetadataRequest(
        controller_id=BROKER,
        controller_epoch=epochs.controller,
        broker_epoch=epochs.broker,
        ungrouped_partition_states=[row] if version < 5 else [],
        topic_states=[grouped] if version >= 5 else [],
        live_brokers=[live],
    )


def stale_epochs(peer: Peer, version: int, broker_epoch_since: int) -> list[tuple[Epochs, int]]:
    """Epochs of the past and the code each earns."""
    now = peer.epochs
    past = [(now._replace(controller=now.controller - 1), ErrorCode.STALE_CONTROLLER_EPOCH)]
    if version >= broker_epoch_since:
        past.append((now._replace(broker=now.broker - 1), ErrorCode.STALE_BROKER_EPOCH))
        both = Epochs(now.broker - 1, now.controller - 1)
        past.append((both, ErrorCode.STALE_BROKER_EPOCH))
    return [(epochs, int(code)) for epochs, code in past]


@each_version(ApiKey.LEADER_AND_ISR)
def test_leader_and_isr_of_the_past_is_refused_as_a_whole(peer: Peer, version: int) -> None:
    topic = f"never-{version}"
    for epochs, code in stale_epochs(peer, version, 2):
        response = peer.ask(leading(topic, epochs, version), version)
        assert (response.error_code, rows_of(response, topic)) == (code, [])
    assert peer.produce(topic) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@each_version(ApiKey.LEADER_AND_ISR)
def test_leader_and_isr_makes_a_leader(peer: Peer, version: int) -> None:
    topic = f"led-{version}"
    answers = [
        peer.ask(leading(topic, peer.epochs, version, leader_epoch=epoch), version)
        for epoch in (1, 1, 0, 2)
    ]
    assert [(a.error_code, *rows_of(a, topic)) for a in answers] == [
        (0, ErrorCode.NONE),
        (0, ErrorCode.STALE_CONTROLLER_EPOCH),
        (0, ErrorCode.STALE_CONTROLLER_EPOCH),
        (0, ErrorCode.NONE),
    ]
    assert peer.produce(topic) == ErrorCode.NONE
    others = peer.ask(leading(topic, peer.epochs, version, 3, replicas=(7, 8)), version)
    assert rows_of(others, topic) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


@each_version(ApiKey.STOP_REPLICA)
def test_stop_replica_of_the_past_is_refused_as_a_whole(peer: Peer, version: int) -> None:
    for epochs, code in stale_epochs(peer, version, 1):
        response = peer.ask(stopping([TOPIC], epochs, version), version)
        assert (response.error_code, response.partition_errors) == (code, [])
    assert peer.produce(TOPIC) == ErrorCode.NONE


@each_version(ApiKey.STOP_REPLICA)
def test_stop_replica_deletes(peer: Peer, version: int) -> None:
    topic = f"stopped-{version}"
    peer.ask(leading(topic, peer.epochs, leader_epoch=5), 7)
    if version >= 3:
        late = peer.ask(stopping([topic], peer.epochs, version, leader_epoch=4), version)
        assert [r.error_code for r in late.partition_errors] == [ErrorCode.FENCED_LEADER_EPOCH]
    assert peer.produce(topic) == ErrorCode.NONE
    response = peer.ask(stopping([topic, "not-here"], peer.epochs, version), version)
    rows = [(row.topic_name, row.error_code) for row in response.partition_errors]
    assert (response.error_code, rows) == (0, [(topic, 0), ("not-here", 0)])
    assert peer.produce(topic) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@each_version(ApiKey.UPDATE_METADATA)
def test_update_metadata_of_the_past_changes_nothing(peer: Peer, version: int) -> None:
    before = peer.known()
    for epochs, code in stale_epochs(peer, version, 5):
        response = peer.ask(informing(peer, "never", epochs, version), version)
        assert response.error_code == code
    assert peer.known() == before


@each_version(ApiKey.UPDATE_METADATA)
def test_update_metadata_is_what_clients_are_told(peer: Peer, version: int) -> None:
    topic = f"told-{version}"
    response = peer.ask(informing(peer, topic, peer.epochs, version), version)
    assert response.error_code == ErrorCode.NONE
    found = peer.known()
    assert [p.leader_id for p in found[topic].partitions] == [BROKER]
    assert TOPIC in found
    peer.ask(informing(peer, topic, peer.epochs, version, leader=-2), version)
    assert topic not in peer.known()
    by_name = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=TOPIC)])
    response = peer.ask(by_name, 9)
    assert [(b.host, b.port) for b in response.brokers] == [("127.0.0.1", peer.process.port)]


def test_commands_that_come_together_are_applied_in_their_order(peer: Peer) -> None:
    now, name = peer.epochs, "rushed"
    requests: list[tuple[Any, int]] = [
        (leading(name, now, leader_epoch=1), 7),
        (stopping([name], now, leader_epoch=1), 4),
        (leading(name, now, leader_epoch=0), 7),
        (stopping([name], now, version=0), 0),
        (leading(name, now, leader_epoch=3), 7),
        (stopping([name], now, leader_epoch=2), 4),
        (informing(peer, name, now, 8), 8),
    ]
    with RawConnection(peer.process.bootstrap_servers) as rushed:
        rushed.send(b"".join(encode_request(r, v, n, "raw") for n, (r, v) in enumerate(requests)))
        answers: list[Any] = []
        for number, (request, version) in enumerate(requests):
            frame = rushed.read_frame()
            assert frame is not None
            cls = response_class(request.API_KEY)
            correlation_id, answer = decode_response(cls, version, memoryview(frame))
            answers.append(answer)
            assert (correlation_id, answers[-1].error_code) == (number, 0)
    assert [rows_of(answers[n], name) for n in (0, 2, 4)] == [[0], [0], [0]]
    assert [answers[n].partition_errors[0].error_code for n in (1, 3, 5)] == [
        *(ErrorCode.NONE, ErrorCode.NONE),
        ErrorCode.FENCED_LEADER_EPOCH,
    ]
    assert peer.produce(name) == ErrorCode.NONE
    assert name in peer.known()


@each_version(ApiKey.CONTROLLED_SHUTDOWN)
def test_controlled_shutdown_of_who_is_not_there(peer: Peer, version: int) -> None:
    request = controlled_shutdown.ControlledShutdownRequest(broker_id=42, broker_epoch=1)
    response = peer.ask(request, version)
    assert response.error_code == ErrorCode.BROKER_NOT_AVAILABLE
    if version >= 2:
        request.broker_id, request.broker_epoch = BROKER, peer.epochs.broker - 1
        assert peer.ask(request, version).error_code == ErrorCode.STALE_BROKER_EPOCH


@each_version(ApiKey.CONTROLLED_SHUTDOWN)
def test_controlled_shutdown(broker_factory: Any, version: int) -> None:
    peer = Peer(broker_factory())
    request = controlled_shutdown.ControlledShutdownRequest(
        broker_id=BROKER, broker_epoch=peer.epochs.broker
    )
    response = peer.ask(request, version)
    assert (response.error_code, response.remaining_partitions) == (0, [])
    peer.connection.close()


def wish(
    peer: Peer, version: int, broker_epoch: int | None = None, **changes: Any
) -> alter_partition.AlterPartitionRequest:
    """The ISR of the real topic as it is, with what a test changes of it."""
    isr = [BROKER]
    row = alter_partition.PartitionData(
        leader_epoch=changes.get("leader_epoch", 0),
        partition_epoch=changes.get("partition_epoch", 0),
        new_isr=isr if version < 3 else [],
        new_isr_with_epochs=[alter_partition.BrokerState(broker_id=b) for b in isr],
    )
    topic = alter_partition.TopicData(
        topic_name=changes.get("name", TOPIC),
        topic_id=changes.get("topic_id", peer.topic_id),
        partitions=[row],
    )
    epoch = peer.epochs.broker if broker_epoch is None else broker_epoch
    return alter_partition.AlterPartitionRequest(
        broker_id=BROKER, broker_epoch=epoch, topics=[topic]
    )


@each_version(ApiKey.ALTER_PARTITION)
def test_alter_partition(peer: Peer, version: int) -> None:
    response = peer.ask(wish(peer, version), version)
    [topic] = response.topics
    known = (topic.topic_name, ZERO_UUID) if version < 2 else ("", peer.topic_id)
    assert (response.error_code, (topic.topic_name or "", topic.topic_id)) == (0, known)
    [row] = topic.partitions
    assert (row.error_code, row.leader_id, row.isr, row.leader_epoch, row.partition_epoch) == (
        *(0, BROKER),
        [BROKER],
        *(0, 0),
    )


@each_version(ApiKey.ALTER_PARTITION)
def test_alter_partition_is_refused(peer: Peer, version: int) -> None:
    for broker_epoch in (peer.epochs.broker - 1, peer.epochs.broker + 1):
        response = peer.ask(wish(peer, version, broker_epoch), version)
        assert (response.error_code, response.topics) == (ErrorCode.STALE_BROKER_EPOCH, [])
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if version < 2 else ErrorCode.UNKNOWN_TOPIC_ID
    nobody = {"name": "nobody", "topic_id": topic_id("nobody")}
    refusals: list[tuple[dict[str, Any], ErrorCode]] = [
        (nobody, unknown),
        ({"leader_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ({"partition_epoch": 9}, ErrorCode.NOT_CONTROLLER),
        ({"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
    ]
    for changes, code in refusals:
        response = peer.ask(wish(peer, version, **changes), version)
        assert response.topics[0].partitions[0].error_code == code, changes
