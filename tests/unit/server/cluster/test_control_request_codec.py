"""A command through the bytes of each version is the command again, but for what that version
cannot say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.common.cluster_state import (
    NO_EPOCH,
    RECOVERED,
    SECURITY_PROTOCOL_IDS,
    BrokerInfo,
    CommandResult,
    Endpoint,
    LeaderAndIsr,
    LeaderAndIsrCommand,
    LeaderAndIsrPartition,
    StopReplicaCommand,
    StopReplicaPartition,
    UpdateMetadataCommand,
    UpdateMetadataPartition,
)
from kafkapy.common.errors import ErrorCode, ProtocolViolation
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import ZERO_UUID, Uuid
from kafkapy.protocol.messages import leader_and_isr as lai
from kafkapy.protocol.messages import update_metadata as um
from kafkapy.server.cluster import control_request_codec as wire
from tests.harness.protocol.protocol_examples import over_the_wire

LISTENER = "INTERNAL"
TOPICS = {name: Uuid(bytes(15) + name.encode()) for name in "abc"}

examples = settings(max_examples=40, deadline=None)
ids = st.integers(0, 2**31 - 1)
epochs = st.integers(-1, 2**31 - 1)
replicas = st.lists(ids, max_size=3).map(tuple)
errors = st.sampled_from(list(ErrorCode))
placed = st.tuples(st.sampled_from(sorted(TOPICS)), st.integers(0, 9))
states = st.builds(
    LeaderAndIsr, st.integers(-2, 9), epochs, replicas, epochs, epochs, st.sampled_from([0, 1])
)
endpoints = st.builds(
    Endpoint,
    st.sampled_from(["INTERNAL", "CLIENT", "PLAINTEXT"]),
    st.sampled_from(["h", "10.0.0.1", "::1"]),
    st.integers(1, 65535),
    st.sampled_from(sorted(SECURITY_PROTOCOL_IDS)),
)
brokers = st.builds(
    BrokerInfo,
    ids,
    st.lists(endpoints, min_size=1, max_size=3, unique_by=lambda e: e.listener).map(tuple),
    st.sampled_from([None, "r1"]),
)
headers = st.tuples(ids, ids, st.integers(-1, 2**62))


def by_topic(rows: Any) -> list[Any]:
    """Rows grouped by topic, topics in the order of their first row."""
    first = list(dict.fromkeys(row.topic for row in rows))
    return sorted(rows, key=lambda row: first.index(row.topic))


def versions(last: int) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("version", range(last + 1))


def test_the_versions_sent_are_those_of_3_9() -> None:
    sent = (wire.LEADER_AND_ISR_VERSION, wire.STOP_REPLICA_VERSION, wire.UPDATE_METADATA_VERSION)
    assert sent == (7, 4, 8)


@st.composite
def leader_and_isr_commands(draw: st.DrawFn) -> LeaderAndIsrCommand:
    rows = [
        LeaderAndIsrPartition(topic, TOPICS[topic], index, *draw(st.tuples(*columns)))
        for topic, index in draw(st.lists(placed, unique=True, max_size=5))
        for columns in [(states, replicas, replicas, replicas, st.booleans())]
    ]
    return LeaderAndIsrCommand(*draw(headers), by_topic(rows), draw(st.lists(brokers, max_size=2)))


def leader_and_isr_in(version: int, command: LeaderAndIsrCommand) -> LeaderAndIsrCommand:
    """The part of a command that this version can encode."""

    def row(told: LeaderAndIsrPartition) -> LeaderAndIsrPartition:
        state = told.state if version >= 6 else replace(told.state, leader_recovery_state=RECOVERED)
        return LeaderAndIsrPartition(
            told.topic,
            told.topic_id if version >= 5 else ZERO_UUID,
            told.partition,
            state,
            told.replicas,
            told.adding_replicas if version >= 3 else (),
            told.removing_replicas if version >= 3 else (),
            told.is_new and version >= 1,
        )

    reachable = [(b.broker_id, b.endpoint(LISTENER)) for b in command.live_leaders]
    return LeaderAndIsrCommand(
        command.controller_id,
        command.controller_epoch,
        command.broker_epoch if version >= 2 else -1,
        [row(told) for told in command.partitions],
        [BrokerInfo(b, (Endpoint(LISTENER, e.host, e.port),)) for b, e in reachable if e],
    )


@versions(7)
@examples
@given(command=leader_and_isr_commands())
def test_leader_and_isr(version: int, command: LeaderAndIsrCommand) -> None:
    request = over_the_wire(wire.leader_and_isr_request(command, LISTENER, version), version)
    assert wire.leader_and_isr_command(request, LISTENER) == leader_and_isr_in(version, command)


@versions(7)
@examples
@given(command=leader_and_isr_commands(), error=errors, data=st.data())
def test_the_answer_to_leader_and_isr(
    version: int, command: LeaderAndIsrCommand, error: ErrorCode, data: st.DataObject
) -> None:
    rows = {row.topic_partition: data.draw(errors) for row in command.partitions}
    result = CommandResult(error, rows)
    response = wire.leader_and_isr_response(result, command, version)
    assert wire.leader_and_isr_result(over_the_wire(response, version), command) == result


def test_rows_of_topics_that_nobody_asked_of_are_left_out() -> None:
    row = lai.LeaderAndIsrPartitionError(partition_index=0)
    topic = lai.LeaderAndIsrTopicError(topic_id=TOPICS["a"], partition_errors=[row])
    command = LeaderAndIsrCommand(1, 1, 1, [])
    found = wire.leader_and_isr_result(lai.LeaderAndIsrResponse(topics=[topic]), command)
    assert found == CommandResult()


@st.composite
def update_metadata_commands(draw: st.DrawFn) -> UpdateMetadataCommand:
    rows = [
        UpdateMetadataPartition(
            topic,
            TOPICS[topic],
            index,
            replace(draw(states), leader_recovery_state=RECOVERED),
            *draw(st.tuples(replicas, replicas)),
        )
        for topic, index in draw(st.lists(placed, unique=True, max_size=5))
    ]
    live = draw(st.lists(brokers, max_size=3))
    return UpdateMetadataCommand(*draw(headers), by_topic(rows), live)


def broker_in(version: int, broker: BrokerInfo) -> BrokerInfo:
    known = broker.endpoints
    if version == 0:
        plain = [e for e in known if e.security_protocol == "PLAINTEXT"]
        return BrokerInfo(
            broker.broker_id, tuple(e._replace(listener="PLAINTEXT") for e in plain[:1])
        )
    if version < 3:
        known = tuple(e._replace(listener=e.security_protocol) for e in known)
    return BrokerInfo(broker.broker_id, known, broker.rack if version >= 2 else None)


@versions(8)
@examples
@given(command=update_metadata_commands())
def test_update_metadata(version: int, command: UpdateMetadataCommand) -> None:
    request = over_the_wire(wire.update_metadata_request(command, version), version)
    assert wire.update_metadata_command(request) == UpdateMetadataCommand(
        command.controller_id,
        command.controller_epoch,
        command.broker_epoch if version >= 5 else -1,
        [
            replace(
                row,
                topic_id=row.topic_id if version >= 7 else ZERO_UUID,
                offline_replicas=row.offline_replicas if version >= 4 else (),
            )
            for row in command.partitions
        ],
        [broker_in(version, broker) for broker in command.live_brokers],
    )


def test_a_protocol_that_does_not_exist_is_not_sent_and_not_taken() -> None:
    odd = BrokerInfo(1, (Endpoint("MINE", "h", 1, "MINE"), Endpoint("PLAINTEXT", "h", 2)))
    request = wire.update_metadata_request(UpdateMetadataCommand(1, 1, 1, [], [odd]))
    [sent] = request.live_brokers
    assert [endpoint.listener for endpoint in sent.endpoints] == ["PLAINTEXT"]
    sent.endpoints.append(um.UpdateMetadataEndpoint(security_protocol=9))
    with pytest.raises(ProtocolViolation, match="security protocol 9"):
        wire.update_metadata_command(request)


@st.composite
def stop_replica_commands(draw: st.DrawFn) -> StopReplicaCommand:
    rows = [
        StopReplicaPartition(topic, index, draw(st.integers(-2, 9)), draw(st.booleans()))
        for topic, index in draw(st.lists(placed, unique=True, max_size=5))
    ]
    return StopReplicaCommand(*draw(headers), by_topic(rows))


@versions(4)
@examples
@given(command=stop_replica_commands())
def test_stop_replica(version: int, command: StopReplicaCommand) -> None:
    if version < 3:
        kept = [row for row in command.partitions if row.delete == command.partitions[0].delete]
        command = replace(command, partitions=kept)
    request = over_the_wire(wire.stop_replica_request(command, version), version)
    assert wire.stop_replica_command(request) == StopReplicaCommand(
        command.controller_id,
        command.controller_epoch,
        command.broker_epoch if version >= 1 else -1,
        [
            replace(row, leader_epoch=row.leader_epoch if version >= 3 else NO_EPOCH)
            for row in command.partitions
        ],
    )


@versions(4)
@examples
@given(error=errors, rows=st.dictionaries(placed, errors, max_size=4))
def test_the_answer_to_stop_replica(
    version: int, error: ErrorCode, rows: dict[tuple[str, int], ErrorCode]
) -> None:
    result = CommandResult(error, {TopicPartition(*key): code for key, code in rows.items()})
    response = over_the_wire(wire.stop_replica_response(result), version)
    assert wire.stop_replica_result(response) == result
