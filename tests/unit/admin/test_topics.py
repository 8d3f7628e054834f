"""Requests about topics, in every version a broker may want, and refusals in its words."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.admin.batches import PER_REQUEST
from kafkapy.admin.topics import NewTopic, create_partitions, create_topic, delete_topics
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.create_partitions import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kafkapy.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from kafkapy.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata


def cluster_on(
    key: ApiKey, answer: Any, version: int | None = None
) -> tuple[Cluster, ScriptedCluster]:
    scripted = ScriptedCluster({ApiKey.METADATA: metadata(), key: answer})
    if version is not None:
        scripted.versions = {**scripted.versions, key: (0, version)}
    return Cluster("b:1", {"request.timeout.ms": "77"}, connector=scripted.connect), scripted


def test_create() -> None:
    answer = CreateTopicsResponse(topics=[CreatableTopicResult(name="t")])
    cluster, scripted = cluster_on(ApiKey.CREATE_TOPICS, answer)
    create_topic(cluster, NewTopic("t", 3, 2, None, {"a": "1"}), validate_only=True)
    (request,) = scripted.requests_of(ApiKey.CREATE_TOPICS)
    (topic,) = request.topics
    assert (topic.num_partitions, topic.replication_factor) == (3, 2)
    assert (request.validate_only, request.timeout_ms) == (True, 77)


def test_create_refused() -> None:
    refused = CreatableTopicResult(name="t", error_code=37, error_message="no")
    cluster, _ = cluster_on(ApiKey.CREATE_TOPICS, CreateTopicsResponse(topics=[refused]))
    with pytest.raises(ApiError, match="no") as caught:
        create_topic(cluster, NewTopic("t"))
    assert caught.value.code is ErrorCode.INVALID_PARTITIONS


@pytest.mark.parametrize("version", [5, 6])
def test_delete_by_name_in_both_shapes(version: int) -> None:
    answer = DeleteTopicsResponse(responses=[DeletableTopicResult(name="a")])
    cluster, scripted = cluster_on(ApiKey.DELETE_TOPICS, answer, version)
    delete_topics(cluster, ["a", "b"])
    (request,) = scripted.requests_of(ApiKey.DELETE_TOPICS)
    assert (request.topic_names or [t.name for t in request.topics]) == ["a", "b"]


def test_delete_of_nothing_asks_nothing() -> None:
    cluster, scripted = cluster_on(ApiKey.DELETE_TOPICS, None)
    delete_topics(cluster, [])
    assert scripted.requests == []


def test_delete_refused() -> None:
    refused = DeletableTopicResult(name="a", error_code=ErrorCode.TOPIC_DELETION_DISABLED)
    cluster, _ = cluster_on(ApiKey.DELETE_TOPICS, DeleteTopicsResponse(responses=[refused]))
    with pytest.raises(ApiError, match="Topic deletion is disabled"):
        delete_topics(cluster, ["a"])


def test_after_a_refusal_one_knows_which_topics_are_gone() -> None:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    results = [DeletableTopicResult(name=name) for name in "abcd"]
    results[1].error_code = results[3].error_code = code
    cluster, _ = cluster_on(ApiKey.DELETE_TOPICS, DeleteTopicsResponse(responses=results))
    lines = "Topic authorization failed.\nRefused topics: b, d\nDeleted topics: a, c"
    with pytest.raises(ApiError, match=f"^{lines}$") as caught:
        delete_topics(cluster, [*"abcd"])
    assert caught.value.code is code


def test_many_topics_are_several_requests_with_one_result() -> None:
    """The controller changes one topic after the other. All in one request exceeded the timeout."""
    names = [f"t{index}" for index in range(PER_REQUEST + 1)]
    refused = {"name": "t0", "error_code": ErrorCode.POLICY_VIOLATION}
    deleted = [
        DeleteTopicsResponse(responses=[DeletableTopicResult(**refused)]),
        DeleteTopicsResponse(responses=[DeletableTopicResult(name=names[-1])]),
    ]
    cluster, scripted = cluster_on(ApiKey.DELETE_TOPICS, deleted)
    with pytest.raises(ApiError, match=rf"Refused topics: t0\nDeleted topics: {names[-1]}$"):
        delete_topics(cluster, names)
    requests = scripted.requests_of(ApiKey.DELETE_TOPICS)
    assert [[t.name for t in each.topics] for each in requests] == [names[:-1], names[-1:]]

    changed = [
        CreatePartitionsResponse(results=[CreatePartitionsTopicResult(**refused)]),
        CreatePartitionsResponse(results=[CreatePartitionsTopicResult(name=names[-1])]),
    ]
    cluster, scripted = cluster_on(ApiKey.CREATE_PARTITIONS, changed)
    with pytest.raises(ApiError, match=rf"Refused topics: t0\nChanged topics: {names[-1]}$"):
        create_partitions(cluster, dict.fromkeys(names, 3))
    requests = scripted.requests_of(ApiKey.CREATE_PARTITIONS)
    assert [[t.name for t in each.topics] for each in requests] == [names[:-1], names[-1:]]


def test_add_partitions() -> None:
    refused = CreatePartitionsTopicResult(name="b", error_code=37, error_message="too few")
    answer = CreatePartitionsResponse(results=[CreatePartitionsTopicResult(name="a"), refused])
    cluster, scripted = cluster_on(ApiKey.CREATE_PARTITIONS, answer)
    with pytest.raises(ApiError, match=r"^too few\nRefused topics: b\nChanged topics: a$"):
        create_partitions(cluster, {"a": 3, "b": 1}, {"a": [[1, 2]]})
    (request,) = scripted.requests_of(ApiKey.CREATE_PARTITIONS)
    a, b = request.topics
    assert (a.count, [row.broker_ids for row in a.assignments]) == (3, [[1, 2]])
    assert (b.count, b.assignments) == (1, None)
