"""Partitions that DescribeProducers names several times."""

from __future__ import annotations

from unittest.mock import MagicMock

from kafkapy.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kafkapy.server.api.handlers import describe_producers
from kafkapy.server.requests.turns import run_now
from kafkapy.storage.producer_state import ProducerEntry
from tests.harness.cores.request_contexts import request_context


def test_producers_of_a_partition_that_is_named_often_are_in_memory_once() -> None:
    """A request of 1 MB for one partition, again and again, ended the broker."""
    replicas = MagicMock()
    replicas.get.return_value.log.producers.state = [ProducerEntry(7), ProducerEntry(8)]
    named = [("t", [0, 0]), ("u", [0]), ("t", [0, 1])]
    request = DescribeProducersRequest(
        topics=[TopicRequest(name=name, partition_indexes=indexes) for name, indexes in named]
    )
    context = request_context(61, 0)
    response = run_now(describe_producers.handle(replicas, context, request))
    assert [
        (topic.name, [(row.partition_index, len(row.active_producers)) for row in topic.partitions])
        for topic in response.topics
    ] == [("t", [(0, 2), (1, 2)]), ("u", [(0, 2)])]


def test_a_follower_names_producers_too() -> None:
    """A hanging transaction could not be searched for by broker."""
    replicas = MagicMock()
    replicas.get.return_value.is_leader = False
    replicas.get.return_value.log.producers.state = [ProducerEntry(7)]
    request = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0])])
    response = run_now(describe_producers.handle(replicas, request_context(61, 0), request))
    [row] = response.topics[0].partitions
    assert [producer.producer_id for producer in row.active_producers] == [7]
