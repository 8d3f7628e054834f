"""The older form of `topics`: what it wants, what it says."""

from __future__ import annotations

import pytest

from kafkapy.cli.commands import topics_zookeeper
from kafkapy.client.cluster import Cluster
from kafkapy.client.metadata import TopicMetadata
from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.create_partitions import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kafkapy.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from kafkapy.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from tests.harness.scripted.cli import kafkapy
from tests.harness.scripted.scripted_broker import ScriptedCluster
from tests.harness.scripted.scripted_topics import describing_cluster


def cluster_with(scripted: ScriptedCluster) -> tuple[Cluster, TopicMetadata]:
    cluster = Cluster("b:1", connector=scripted.connect)
    return cluster, cluster.metadata(["t"]).topics["t"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--list", "--bootstrap-server", "b:1"], "Only one of --bootstrap-server or --zookeeper"),
        (["--create", "--topic", "n"], 'Missing required argument "[partitions]"'),
        (["--alter", "--topic", "n"], 'Missing required argument "[partitions]"'),
        (
            ["--list", "--delete-config", "a"],
            '"[delete-config]" can\'t be used with option "[list]',
        ),
    ],
)
def test_wrong_words(words: list[str], said: str) -> None:
    done = kafkapy("topics", "--zookeeper", "127.0.0.1:1", *words)
    assert said in done.stderr
    assert done.status == 1


def test_configs_and_partitions_change_with_their_warnings() -> None:
    scripted = describing_cluster(
        INCREMENTAL_ALTER_CONFIGS=IncrementalAlterConfigsResponse(),
        CREATE_PARTITIONS=CreatePartitionsResponse(results=[CreatePartitionsTopicResult(name="t")]),
    )
    cluster, topic = cluster_with(scripted)
    printed: list[str] = []
    sets = {"retention.ms": "1"}
    topics_zookeeper.alter(cluster, [topic], sets, [], 6, None, printed.append)
    assert printed == [
        "WARNING: Altering topic configuration from this script has been deprecated and may be"
        " removed in future releases.",
        "         Going forward, please use kafka-configs.sh for this functionality",
        "Updated config for topic t.",
        "WARNING: If partitions are increased for a topic that has a key, the partition logic or"
        " ordering of the messages will be affected",
        "Adding partitions succeeded!",
    ]
    assert scripted.requests_of(ApiKey.CREATE_PARTITIONS)[0].topics[0].count == 6


def test_after_a_refusal_one_knows_which_topics_were_changed() -> None:
    refused = AlterConfigsResourceResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    answers = [
        IncrementalAlterConfigsResponse(),
        IncrementalAlterConfigsResponse(responses=[refused]),
    ]
    cluster, topic = cluster_with(describing_cluster(INCREMENTAL_ALTER_CONFIGS=answers))
    printed: list[str] = []
    topics, sets = [topic, TopicMetadata("u")], {"retention.ms": "1"}
    with pytest.raises(ApiError, match="Topic authorization failed"):
        topics_zookeeper.alter(cluster, topics, sets, [], None, None, printed.append)
    assert printed[-1] == "Updated config for topic t."


@pytest.mark.parametrize(
    ("topic", "wanted", "said"),
    [
        ("t", 5, "Topic t currently has 5 partitions, 5 would not be an increase."),
        ("__consumer_offsets", 9, "internal topic __consumer_offsets cannot be changed"),
    ],
)
def test_partitions_that_cannot_be(topic: str, wanted: int, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        topics_zookeeper.check_partition_count(topic, 5, wanted)


def test_deletes_are_marks() -> None:
    deleted = DeleteTopicsResponse(responses=[DeletableTopicResult(name="t")])
    cluster, topic = cluster_with(describing_cluster(DELETE_TOPICS=deleted))
    assert list(topics_zookeeper.delete(cluster, [topic]).text) == [
        "Topic t is marked for deletion.",
        "Note: This will have no impact if delete.topic.enable is not set to true.",
    ]
    with pytest.raises(ConfigError, match="not allowed to be marked for deletion"):
        topics_zookeeper.delete(cluster, [TopicMetadata("__consumer_offsets")])
