"""Reading a Metadata response."""

import pytest

from kafkapy.client.metadata import Broker, cluster_metadata
from kafkapy.common.errors import ErrorCode
from kafkapy.common.uuid import Uuid
from kafkapy.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)


def test_everything_is_read_and_partitions_are_in_order() -> None:
    topic_id = Uuid(bytes(range(16)))
    partitions = [
        MetadataResponsePartition(partition_index=1, leader_id=-1, error_code=5),
        MetadataResponsePartition(
            partition_index=0,
            leader_id=2,
            leader_epoch=4,
            replica_nodes=[2, 1],
            isr_nodes=[2],
            offline_replicas=[1],
        ),
    ]
    found = cluster_metadata(
        MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=2, host="h", port=9, rack="r")],
            cluster_id="c",
            controller_id=2,
            topics=[
                MetadataResponseTopic(
                    name="t", topic_id=topic_id, is_internal=True, partitions=partitions
                )
            ],
        )
    )
    topic = found.topics["t"]
    assert (topic.topic_id, topic.is_internal, list(topic.partitions)) == (topic_id, True, [0, 1])
    assert topic.partitions[0].replicas == (2, 1)
    assert topic.partitions[0].offline_replicas == (1,)
    assert topic.partitions[1].error is ErrorCode.LEADER_NOT_AVAILABLE
    assert str(found.brokers[2]) == "h:9 (id: 2 rack: r)"


@pytest.mark.parametrize("name", ["", None])
def test_topics_without_a_name_have_their_id_or_the_empty_name(name: str | None) -> None:
    """`--topic ""` is answered with that name; an unknown topic id, with none."""
    topic_id = Uuid(bytes(range(16)))
    unknown = [
        MetadataResponseTopic(name=name, topic_id=topic_id, error_code=100),
        MetadataResponseTopic(name="", error_code=17),
    ]
    found = cluster_metadata(MetadataResponse(topics=unknown)).topics
    assert {key: topic.error for key, topic in found.items()} == {
        str(topic_id): ErrorCode.UNKNOWN_TOPIC_ID,
        "": ErrorCode.INVALID_TOPIC_EXCEPTION,
    }


def test_a_broker_without_a_rack_says_null() -> None:
    assert str(Broker(0, "h", 1)) == "h:1 (id: 0 rack: null)"
