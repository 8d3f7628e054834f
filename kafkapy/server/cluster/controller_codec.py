"""Brokers' requests to the controller as wire messages: AlterPartition, ControlledShutdown."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from kafkapy.common.cluster_state import LeaderAndIsr
from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import Uuid
from kafkapy.controller.events import (
    AlterPartitionItem,
    AlterPartitionResult,
    ControlledShutdownResult,
)
from kafkapy.protocol.messages import alter_partition as ap
from kafkapy.protocol.messages import controlled_shutdown as cs

# The version that a broker with inter.broker.protocol.version=3.9 sends, without negotiation.
CONTROLLED_SHUTDOWN_VERSION: Final = 3
# AlterPartition's version is negotiated: topics by id from v2 on, ISRs with broker epochs from v3.
TOPIC_IDS_VERSION: Final = 2
_BROKER_EPOCHS_VERSION: Final = 3
# A response does not contain the epoch of the controller that wrote the state.
_NO_CONTROLLER_EPOCH: Final = -1


def alter_partition_request(
    broker_id: int, broker_epoch: int, items: Sequence[AlterPartitionItem], version: int
) -> ap.AlterPartitionRequest:
    """A leader's request. Below v2 every topic needs its name, from v2 on its id."""
    topics: dict[str | Uuid, ap.TopicData] = {}
    for item in items:
        topic = topics.setdefault(
            _key(item, version), ap.TopicData(topic_name=item.topic, topic_id=item.topic_id)
        )
        row = ap.PartitionData(
            partition_index=item.partition,
            leader_epoch=item.leader_epoch,
            leader_recovery_state=item.leader_recovery_state,
            partition_epoch=item.partition_epoch,
        )
        if version < _BROKER_EPOCHS_VERSION:
            row.new_isr = list(item.new_isr)
        else:
            row.new_isr_with_epochs = [
                ap.BrokerState(broker_id=member, broker_epoch=epoch)
                for member, epoch in zip_longest(item.new_isr, item.isr_epochs, fillvalue=-1)
            ]
        topic.partitions.append(row)
    return ap.AlterPartitionRequest(
        broker_id=broker_id, broker_epoch=broker_epoch, topics=list(topics.values())
    )


def alter_partition_items(request: ap.AlterPartitionRequest) -> list[AlterPartitionItem]:
    """The items of a request of any version. Each has either the topic's name or its id."""
    return [
        AlterPartitionItem(
            topic.topic_name,
            topic.topic_id,
            row.partition_index,
            row.leader_epoch,
            tuple(row.new_isr) or tuple(member.broker_id for member in row.new_isr_with_epochs),
            row.leader_recovery_state,
            row.partition_epoch,
            tuple(member.broker_epoch for member in row.new_isr_with_epochs),
        )
        for topic in request.topics
        for row in topic.partitions
    ]


def alter_partition_response(
    result: AlterPartitionResult, version: int
) -> ap.AlterPartitionResponse:
    """The response to a leader. Below v2, OPERATION_NOT_ATTEMPTED replaces INELIGIBLE_REPLICA."""
    topics: dict[str | Uuid, ap.TopicDataResponse] = {}
    for item, error, state in result.rows:
        topic = topics.setdefault(
            _key(item, version),
            ap.TopicDataResponse(topic_name=item.topic, topic_id=item.topic_id),
        )
        if error is ErrorCode.INELIGIBLE_REPLICA and version < TOPIC_IDS_VERSION:
            error = ErrorCode.OPERATION_NOT_ATTEMPTED
        row = ap.PartitionDataResponse(partition_index=item.partition, error_code=error)
        if state is not None:
            row.leader_id = state.leader
            row.leader_epoch = state.leader_epoch
            row.isr = list(state.isr)
            row.leader_recovery_state = state.leader_recovery_state
            row.partition_epoch = state.partition_epoch
        topic.partitions.append(row)
    return ap.AlterPartitionResponse(error_code=result.error, topics=list(topics.values()))


def alter_partition_result(
    response: ap.AlterPartitionResponse, items: Sequence[AlterPartitionItem], version: int
) -> AlterPartitionResult:
    """The result of `items`. Items that are not in the response have no row."""
    found: dict[tuple[str | Uuid, int], tuple[ErrorCode, LeaderAndIsr | None]] = {}
    for topic in response.topics:
        key = topic.topic_name if version < TOPIC_IDS_VERSION else topic.topic_id
        for row in topic.partitions:
            error = ErrorCode(row.error_code)
            state = None if error is not ErrorCode.NONE else _state(row)
            found[key, row.partition_index] = (error, state)
    rows = []
    for item in items:
        answer = found.get((_key(item, version), item.partition))
        if answer is not None:
            rows.append((item, *answer))
    return AlterPartitionResult(ErrorCode(response.error_code), rows)


def _key(item: AlterPartitionItem, version: int) -> str | Uuid:
    return item.topic if version < TOPIC_IDS_VERSION else item.topic_id


def _state(row: ap.PartitionDataResponse) -> LeaderAndIsr:
    return LeaderAndIsr(
        row.leader_id,
        row.leader_epoch,
        tuple(row.isr),
        row.partition_epoch,
        _NO_CONTROLLER_EPOCH,
        row.leader_recovery_state,
    )


def controlled_shutdown_response(
    result: ControlledShutdownResult,
) -> cs.ControlledShutdownResponse:
    """The response message, the same in all versions."""
    return cs.ControlledShutdownResponse(
        error_code=result.error,
        remaining_partitions=[
            cs.RemainingPartition(topic_name=topic, partition_index=partition)
            for topic, partition in result.remaining
        ],
    )


def controlled_shutdown_result(
    response: cs.ControlledShutdownResponse,
) -> ControlledShutdownResult:
    """The result in a response, the same in all versions."""
    return ControlledShutdownResult(
        ErrorCode(response.error_code),
        [
            TopicPartition(row.topic_name, row.partition_index)
            for row in response.remaining_partitions
        ],
    )
