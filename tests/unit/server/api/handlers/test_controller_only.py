"""Requests for the active controller are refused by other brokers, row by row if they have rows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import ZERO_UUID, Uuid
from kafkapy.controller.context import ReplicaAssignment
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages import request_class
from kafkapy.protocol.messages.create_partitions import CreatePartitionsTopic
from kafkapy.protocol.messages.create_topics import CreatableTopic
from kafkapy.protocol.messages.delete_topics import DeleteTopicState
from kafkapy.protocol.messages.elect_leaders import TopicPartitions
from kafkapy.server.api import handler_table
from kafkapy.server.api.handlers import SERVED
from kafkapy.zk.stores.znodes import ProducerIdBlock
from tests.harness.cores.areas import area

TOPIC_ID = Uuid(bytes(15) + b"\1")
REQUESTS: list[tuple[ApiKey, int, dict[str, Any]]] = [
    (ApiKey.CREATE_TOPICS, 7, {"topics": [CreatableTopic(name="t")]}),
    (ApiKey.DELETE_TOPICS, 5, {"topic_names": ["t"]}),
    (ApiKey.DELETE_TOPICS, 6, {"topics": [DeleteTopicState(name=None, topic_id=TOPIC_ID)]}),
    (ApiKey.CREATE_PARTITIONS, 3, {"topics": [CreatePartitionsTopic(name="t", count=2)]}),
    (ApiKey.ELECT_LEADERS, 0, {"topic_partitions": [TopicPartitions(topic="t", partitions=[0])]}),
    (ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, {"topics": []}),
    (ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, {"topics": None}),
]


def ask(key: ApiKey, controller: Any, request: Any) -> Any:
    """The response of this controller's broker to a request."""
    areas = (handler_table.topics, handler_table.controller)
    handlers = {k: v for build in areas for k, v in area(build, controller=controller).items()}
    return handlers[key](SimpleNamespace(version=0), request)


@pytest.mark.parametrize(("key", "version", "fields"), REQUESTS)
def test_a_broker_that_is_not_the_controller(
    key: ApiKey, version: int, fields: dict[str, Any]
) -> None:
    served = SERVED[key]
    request = request_class(key)(**fields)
    with pytest.raises(ApiError) as refused:
        ask(key, SimpleNamespace(controller=None), request)
    assert refused.value.code is ErrorCode.NOT_CONTROLLER
    response = served.refuse(request, refused.value, version)
    found = list(errors(response))
    assert found
    assert set(found) == {ErrorCode.NOT_CONTROLLER}


def errors(response: Any) -> Any:
    """Every error code of a response, its rows' too."""
    if hasattr(response, "error_code"):
        yield response.error_code
    for name in ("topics", "responses", "results", "replica_election_results", "partition_result"):
        for row in getattr(response, name, []):
            yield from errors(row)


def test_deletions_by_id_are_refused_by_id() -> None:
    served = SERVED[ApiKey.DELETE_TOPICS]
    request = request_class(ApiKey.DELETE_TOPICS)(
        topics=[DeleteTopicState(name=None, topic_id=TOPIC_ID), DeleteTopicState(name="t")]
    )
    rows = served.refuse(request, ApiError(ErrorCode.NOT_CONTROLLER), 6).responses
    assert [(row.name, row.topic_id) for row in rows] == [(None, TOPIC_ID), ("t", ZERO_UUID)]


@pytest.mark.parametrize(
    "key", [ApiKey.ALTER_PARTITION_REASSIGNMENTS, ApiKey.LIST_PARTITION_REASSIGNMENTS]
)
def test_a_controller_that_resigns_meanwhile(key: ApiKey) -> None:
    queue: list[Any] = []
    controller = SimpleNamespace(controller=SimpleNamespace(is_active=True), submit=queue.append)
    pending = ask(key, controller, request_class(key)(topics=[]))
    queue[0].reply(ErrorCode.NOT_CONTROLLER)
    assert pending.response.error_code == ErrorCode.NOT_CONTROLLER


def test_a_block_of_producer_ids_is_asked_for_and_refused_through_the_queue() -> None:
    key = ApiKey.ALLOCATE_PRODUCER_IDS
    queue: list[Any] = []
    broker = SimpleNamespace(submit=queue.append)
    request = request_class(key)(broker_id=2, broker_epoch=77)
    pending = [ask(key, broker, request) for _ in range(2)]
    assert [(event.broker_id, event.broker_epoch) for event in queue] == [(2, 77)] * 2
    queue[0].reply(ProducerIdBlock(2, 3000, 3999))
    queue[1].reply(ErrorCode.NOT_CONTROLLER)
    given, refused = (each.response for each in pending)
    assert (given.error_code, given.producer_id_start, given.producer_id_len) == (0, 3000, 1000)
    assert refused.error_code == ErrorCode.NOT_CONTROLLER


def test_reassignments_under_way_are_listed_by_topic() -> None:
    key = ApiKey.LIST_PARTITION_REASSIGNMENTS
    queue: list[Any] = []
    controller = SimpleNamespace(controller=SimpleNamespace(is_active=True), submit=queue.append)
    pending = ask(key, controller, request_class(key)(topics=None))
    assert queue[0].partitions is None
    moving = ReplicaAssignment((3, 1), (3,), (1,))
    queue[0].reply({TopicPartition("t", i): moving for i in (0, 2)})
    [topic] = pending.response.topics
    assert topic.name == "t"
    assert [
        (p.partition_index, p.replicas, p.adding_replicas, p.removing_replicas)
        for p in topic.partitions
    ] == [(0, [3, 1], [3], [1]), (2, [3, 1], [3], [1])]
