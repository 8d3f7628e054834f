"""AlterPartition and ControlledShutdown through the bytes of each version."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.common.cluster_state import RECOVERED, LeaderAndIsr
from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import ZERO_UUID, Uuid
from kafkapy.controller.events import (
    AlterPartitionItem,
    AlterPartitionResult,
    ControlledShutdownResult,
)
from kafkapy.protocol.messages import alter_partition as ap
from kafkapy.server.cluster import controller_codec as wire
from tests.harness.protocol.protocol_examples import over_the_wire

TOPICS = {name: Uuid(bytes(15) + name.encode()) for name in "abc"}
alter_versions = pytest.mark.parametrize("version", range(4))

examples = settings(max_examples=40, deadline=None)
ids = st.integers(0, 2**31 - 1)
isrs = st.lists(ids, max_size=3).map(tuple)
errors = st.sampled_from(list(ErrorCode))
placed = st.tuples(st.sampled_from(sorted(TOPICS)), st.integers(0, 9))


@st.composite
def item_lists(draw: st.DrawFn) -> list[AlterPartitionItem]:
    items = []
    for topic, index in sorted(draw(st.sets(placed, max_size=5))):
        isr, recovery = draw(isrs), draw(st.sampled_from([0, 1]))
        epochs = tuple(draw(st.integers(-1, 2**62)) for _ in isr)
        epoch, partition_epoch = draw(ids), draw(ids)
        key = (topic, TOPICS[topic], index)
        items.append(AlterPartitionItem(*key, epoch, isr, recovery, partition_epoch, epochs))
    return items


def item_in(version: int, item: AlterPartitionItem) -> AlterPartitionItem:
    """The part of an item that this version can encode."""
    recovery = item.leader_recovery_state if version >= 1 else RECOVERED
    if version < 3:
        item = item._replace(isr_epochs=())
    if version < 2:
        return item._replace(topic_id=ZERO_UUID, leader_recovery_state=recovery)
    return item._replace(topic="", leader_recovery_state=recovery)


@alter_versions
@examples
@given(items=item_lists(), broker=ids, epoch=st.integers(-1, 2**62))
def test_wishes(version: int, items: list[AlterPartitionItem], broker: int, epoch: int) -> None:
    request = over_the_wire(wire.alter_partition_request(broker, epoch, items, version), version)
    assert (request.broker_id, request.broker_epoch) == (broker, epoch)
    assert wire.alter_partition_items(request) == [item_in(version, item) for item in items]


@alter_versions
@examples
@given(items=item_lists(), error=errors, data=st.data())
def test_answers(
    version: int, items: list[AlterPartitionItem], error: ErrorCode, data: st.DataObject
) -> None:
    result = AlterPartitionResult(error)
    expected = AlterPartitionResult(error)
    for item in items:
        row_error = data.draw(errors)
        state = LeaderAndIsr(data.draw(ids), item.leader_epoch, item.new_isr, data.draw(ids), -1)
        known = state if row_error is ErrorCode.NONE else None
        result.rows.append((item_in(version, item), row_error, known))
        if row_error is ErrorCode.INELIGIBLE_REPLICA and version < 2:
            row_error = ErrorCode.OPERATION_NOT_ATTEMPTED
        expected.rows.append((item, row_error, known))
    response = over_the_wire(wire.alter_partition_response(result, version), version)
    assert wire.alter_partition_result(response, items, version) == expected


def test_an_item_that_was_not_answered_has_no_row() -> None:
    items = [AlterPartitionItem("a", TOPICS["a"], index, 1, (1,), 0, 1) for index in (0, 1)]
    row = ap.PartitionDataResponse(partition_index=1, error_code=74)
    topic = ap.TopicDataResponse(topic_id=TOPICS["a"], partitions=[row])
    result = wire.alter_partition_result(ap.AlterPartitionResponse(topics=[topic]), items, 3)
    assert result.rows == [(items[1], ErrorCode.FENCED_LEADER_EPOCH, None)]


@pytest.mark.parametrize("version", range(4))
@examples
@given(error=errors, remaining=st.lists(placed, max_size=3))
def test_controlled_shutdown(
    version: int, error: ErrorCode, remaining: list[tuple[str, int]]
) -> None:
    result = ControlledShutdownResult(error, [TopicPartition(*each) for each in remaining])
    response = over_the_wire(wire.controlled_shutdown_response(result), version)
    assert wire.controlled_shutdown_result(response) == result
