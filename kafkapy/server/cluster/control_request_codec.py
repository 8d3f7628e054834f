"""The controller's commands and their wire messages: LeaderAndIsr, UpdateMetadata, StopReplica.

All versions are read and written here and nowhere else. Fields that old versions lack (topic ids,
broker epochs, listener names) get the value for "not given" in the command.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Protocol, TypeVar

from kafkapy.common.cluster_state import (
    NO_EPOCH,
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
from kafkapy.protocol.messages import stop_replica as sr
from kafkapy.protocol.messages import update_metadata as um

# The versions that a broker with inter.broker.protocol.version=3.9 sends, without negotiation.
LEADER_AND_ISR_VERSION: Final = 7
STOP_REPLICA_VERSION: Final = 4
UPDATE_METADATA_VERSION: Final = 8

_PROTOCOL_NAMES: Final = {number: name for name, number in SECURITY_PROTOCOL_IDS.items()}


class _Row(Protocol):
    @property
    def topic(self) -> str: ...


R = TypeVar("R", bound=_Row)


# LeaderAndIsr


def leader_and_isr_request(
    command: LeaderAndIsrCommand, listener: str, version: int = LEADER_AND_ISR_VERSION
) -> lai.LeaderAndIsrRequest:
    """The request. Live leaders without `listener`, the inter-broker listener, are left out."""
    request = lai.LeaderAndIsrRequest(
        controller_id=command.controller_id,
        controller_epoch=command.controller_epoch,
        broker_epoch=command.broker_epoch,
    )
    for leader in command.live_leaders:
        if (endpoint := leader.endpoint(listener)) is not None:
            request.live_leaders.append(
                lai.LeaderAndIsrLiveLeader(
                    broker_id=leader.broker_id, host_name=endpoint.host, port=endpoint.port
                )
            )
    if version < 2:
        request.ungrouped_partition_states = [_leader_and_isr_row(r) for r in command.partitions]
    else:
        request.topic_states = [
            lai.LeaderAndIsrTopicState(
                topic_name=topic,
                topic_id=rows[0].topic_id,
                partition_states=[_leader_and_isr_row(row) for row in rows],
            )
            for topic, rows in _by_topic(command.partitions)
        ]
    return request


def _leader_and_isr_row(row: LeaderAndIsrPartition) -> lai.LeaderAndIsrPartitionState:
    state = row.state
    return lai.LeaderAndIsrPartitionState(
        topic_name=row.topic,
        partition_index=row.partition,
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        partition_epoch=state.partition_epoch,
        replicas=list(row.replicas),
        adding_replicas=list(row.adding_replicas),
        removing_replicas=list(row.removing_replicas),
        is_new=row.is_new,
        leader_recovery_state=state.leader_recovery_state,
    )


def leader_and_isr_command(request: lai.LeaderAndIsrRequest, listener: str) -> LeaderAndIsrCommand:
    """The command of a request of any version. `listener` is that of the live leaders'
    addresses."""
    rows = [
        _leader_and_isr_partition(row.topic_name, ZERO_UUID, row)
        for row in request.ungrouped_partition_states
    ]
    for topic in request.topic_states:
        for row in topic.partition_states:
            rows.append(_leader_and_isr_partition(topic.topic_name, topic.topic_id, row))
    return LeaderAndIsrCommand(
        request.controller_id,
        request.controller_epoch,
        request.broker_epoch,
        rows,
        [
            BrokerInfo(leader.broker_id, (Endpoint(listener, leader.host_name, leader.port),))
            for leader in request.live_leaders
        ],
    )


def _leader_and_isr_partition(
    topic: str, topic_id: Uuid, row: lai.LeaderAndIsrPartitionState
) -> LeaderAndIsrPartition:
    state = LeaderAndIsr(
        row.leader,
        row.leader_epoch,
        tuple(row.isr),
        row.partition_epoch,
        row.controller_epoch,
        row.leader_recovery_state,
    )
    return LeaderAndIsrPartition(
        topic,
        topic_id,
        row.partition_index,
        state,
        tuple(row.replicas),
        tuple(row.adding_replicas),
        tuple(row.removing_replicas),
        row.is_new,
    )


def leader_and_isr_response(
    result: CommandResult, command: LeaderAndIsrCommand, version: int
) -> lai.LeaderAndIsrResponse:
    """The response: rows by topic name, from v5 on by the topic ids of the command."""
    response = lai.LeaderAndIsrResponse(error_code=result.error)
    rows = [
        lai.LeaderAndIsrPartitionError(
            topic_name=topic, partition_index=partition, error_code=error
        )
        for (topic, partition), error in result.partition_errors.items()
    ]
    if version < 5:
        response.partition_errors = rows
        return response
    ids = {row.topic: row.topic_id for row in command.partitions}
    by_id: dict[Uuid, lai.LeaderAndIsrTopicError] = {}
    for row in rows:
        topic_id = ids[row.topic_name]
        topic = by_id.setdefault(topic_id, lai.LeaderAndIsrTopicError(topic_id=topic_id))
        topic.partition_errors.append(row)
    response.topics = list(by_id.values())
    return response


def leader_and_isr_result(
    response: lai.LeaderAndIsrResponse, command: LeaderAndIsrCommand
) -> CommandResult:
    """The result in a broker's response. Rows of topics that are not in `command` are left out."""
    result = CommandResult(ErrorCode(response.error_code))
    for row in response.partition_errors:
        partition = TopicPartition(row.topic_name, row.partition_index)
        result.partition_errors[partition] = ErrorCode(row.error_code)
    names = {row.topic_id: row.topic for row in command.partitions}
    for topic in response.topics:
        name = names.get(topic.topic_id)
        for row in topic.partition_errors if name is not None else ():
            partition = TopicPartition(str(name), row.partition_index)
            result.partition_errors[partition] = ErrorCode(row.error_code)
    return result


# UpdateMetadata


def update_metadata_request(
    command: UpdateMetadataCommand, version: int = UPDATE_METADATA_VERSION
) -> um.UpdateMetadataRequest:
    """The request. Endpoints that it cannot express are left out: v0 has one PLAINTEXT address."""
    request = um.UpdateMetadataRequest(
        controller_id=command.controller_id,
        controller_epoch=command.controller_epoch,
        broker_epoch=command.broker_epoch,
        live_brokers=[_live_broker(broker) for broker in command.live_brokers],
    )
    if version < 5:
        request.ungrouped_partition_states = [_metadata_row(row) for row in command.partitions]
    else:
        request.topic_states = [
            um.UpdateMetadataTopicState(
                topic_name=topic,
                topic_id=rows[0].topic_id,
                partition_states=[_metadata_row(row) for row in rows],
            )
            for topic, rows in _by_topic(command.partitions)
        ]
    return request


def _live_broker(broker: BrokerInfo) -> um.UpdateMetadataBroker:
    plain = next((e for e in broker.endpoints if e.security_protocol == "PLAINTEXT"), None)
    return um.UpdateMetadataBroker(
        id=broker.broker_id,
        v0_host="" if plain is None else plain.host,
        v0_port=-1 if plain is None else plain.port,
        endpoints=[
            um.UpdateMetadataEndpoint(
                port=endpoint.port,
                host=endpoint.host,
                listener=endpoint.listener,
                security_protocol=SECURITY_PROTOCOL_IDS[endpoint.security_protocol],
            )
            for endpoint in broker.endpoints
            if endpoint.security_protocol in SECURITY_PROTOCOL_IDS  # from a znode: any text
        ],
        rack=broker.rack,
    )


def _metadata_row(row: UpdateMetadataPartition) -> um.UpdateMetadataPartitionState:
    state = row.state
    return um.UpdateMetadataPartitionState(
        topic_name=row.topic,
        partition_index=row.partition,
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        zk_version=state.partition_epoch,
        replicas=list(row.replicas),
        offline_replicas=list(row.offline_replicas),
    )


def update_metadata_command(request: um.UpdateMetadataRequest) -> UpdateMetadataCommand:
    """The command of a request of any version.

    Raises:
        ProtocolViolation: an endpoint has an unknown security protocol.
    """
    rows = [
        _metadata_partition(row.topic_name, ZERO_UUID, row)
        for row in request.ungrouped_partition_states
    ]
    for topic in request.topic_states:
        for row in topic.partition_states:
            rows.append(_metadata_partition(topic.topic_name, topic.topic_id, row))
    return UpdateMetadataCommand(
        request.controller_id,
        request.controller_epoch,
        request.broker_epoch,
        rows,
        [_broker_info(broker) for broker in request.live_brokers],
    )


def _metadata_partition(
    topic: str, topic_id: Uuid, row: um.UpdateMetadataPartitionState
) -> UpdateMetadataPartition:
    state = LeaderAndIsr(
        row.leader, row.leader_epoch, tuple(row.isr), row.zk_version, row.controller_epoch
    )
    replicas, offline = tuple(row.replicas), tuple(row.offline_replicas)
    return UpdateMetadataPartition(topic, topic_id, row.partition_index, state, replicas, offline)


def _broker_info(broker: um.UpdateMetadataBroker) -> BrokerInfo:
    endpoints = [_endpoint(endpoint) for endpoint in broker.endpoints]
    if broker.v0_host:
        endpoints.append(Endpoint("PLAINTEXT", broker.v0_host, broker.v0_port))
    return BrokerInfo(broker.id, tuple(endpoints), broker.rack)


def _endpoint(endpoint: um.UpdateMetadataEndpoint) -> Endpoint:
    protocol = _PROTOCOL_NAMES.get(endpoint.security_protocol)
    if protocol is None:
        raise ProtocolViolation(f"security protocol {endpoint.security_protocol}")
    # Before v3 a listener's name was that of its security protocol.
    return Endpoint(endpoint.listener or protocol, endpoint.host, endpoint.port, protocol)


# StopReplica


def stop_replica_request(
    command: StopReplicaCommand, version: int = STOP_REPLICA_VERSION
) -> sr.StopReplicaRequest:
    """The request. Below v3 it has one `delete` flag, so the rows must agree in theirs."""
    rows = command.partitions
    request = sr.StopReplicaRequest(
        controller_id=command.controller_id,
        controller_epoch=command.controller_epoch,
        broker_epoch=command.broker_epoch,
    )
    if version >= 3:
        request.topic_states = [
            sr.StopReplicaTopicState(
                topic_name=topic,
                partition_states=[
                    sr.StopReplicaPartitionState(
                        partition_index=row.partition,
                        leader_epoch=row.leader_epoch,
                        delete_partition=row.delete,
                    )
                    for row in topic_rows
                ],
            )
            for topic, topic_rows in _by_topic(rows)
        ]
        return request
    assert len({row.delete for row in rows}) <= 1, rows
    request.delete_partitions = any(row.delete for row in rows)
    if version == 0:
        request.ungrouped_partitions = [
            sr.StopReplicaPartitionV0(topic_name=row.topic, partition_index=row.partition)
            for row in rows
        ]
    else:
        request.topics = [
            sr.StopReplicaTopicV1(
                name=topic, partition_indexes=[row.partition for row in topic_rows]
            )
            for topic, topic_rows in _by_topic(rows)
        ]
    return request


def stop_replica_command(request: sr.StopReplicaRequest) -> StopReplicaCommand:
    """The command of a request of any version. Below v3 it has no leader epochs for fencing."""
    return StopReplicaCommand(
        request.controller_id,
        request.controller_epoch,
        request.broker_epoch,
        list(_stop_replica_rows(request)),
    )


def _stop_replica_rows(request: sr.StopReplicaRequest) -> Iterator[StopReplicaPartition]:
    delete = request.delete_partitions
    for old in request.ungrouped_partitions:
        yield StopReplicaPartition(old.topic_name, old.partition_index, NO_EPOCH, delete)
    for topic in request.topics:
        for index in topic.partition_indexes:
            yield StopReplicaPartition(topic.name, index, NO_EPOCH, delete)
    for states in request.topic_states:
        for row in states.partition_states:
            yield StopReplicaPartition(
                states.topic_name, row.partition_index, row.leader_epoch, row.delete_partition
            )


def stop_replica_response(result: CommandResult) -> sr.StopReplicaResponse:
    """The response message, the same in all versions."""
    return sr.StopReplicaResponse(
        error_code=result.error,
        partition_errors=[
            sr.StopReplicaPartitionError(
                topic_name=topic, partition_index=partition, error_code=error
            )
            for (topic, partition), error in result.partition_errors.items()
        ],
    )


def stop_replica_result(response: sr.StopReplicaResponse) -> CommandResult:
    """The result in a response, the same in all versions."""
    return CommandResult(
        ErrorCode(response.error_code),
        {
            TopicPartition(row.topic_name, row.partition_index): ErrorCode(row.error_code)
            for row in response.partition_errors
        },
    )


def _by_topic(rows: Iterable[R]) -> Iterable[tuple[str, list[R]]]:
    """Rows grouped by topic. Topics are in the order of their first rows."""
    topics: dict[str, list[R]] = {}
    for row in rows:
        topics.setdefault(row.topic, []).append(row)
    return topics.items()
