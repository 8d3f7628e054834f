"""Topics: create, delete, add partitions (AdminClient's part of `TopicCommand`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kafkapy.admin.batches import batches
from kafkapy.admin.errors import api_error, check
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError
from kafkapy.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafkapy.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafkapy.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState


@dataclass(slots=True)
class NewTopic:
    """A topic to create. Counts of None are the broker's defaults; an assignment replaces both."""

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    assignment: Mapping[int, Sequence[int]] | None = None
    configs: Mapping[str, str] = field(default_factory=dict)


def create_topic(cluster: Cluster, topic: NewTopic, *, validate_only: bool = False) -> None:
    """Create one topic.

    Raises:
        ApiError: the controller refused, with its message.
    """
    assigned = topic.assignment is not None
    creatable = CreatableTopic(
        name=topic.name,
        num_partitions=-1 if assigned or topic.partitions is None else topic.partitions,
        replication_factor=(
            -1 if assigned or topic.replication_factor is None else topic.replication_factor
        ),
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in (topic.assignment or {}).items()
        ],
        configs=[CreatableTopicConfig(name=k, value=v) for k, v in topic.configs.items()],
    )
    response = cluster.controller_request(
        CreateTopicsRequest(
            topics=[creatable], timeout_ms=cluster.request_timeout_ms, validate_only=validate_only
        )
    )
    for result in response.topics:
        check(result.error_code, result.error_message)
    cluster.invalidate_topics([topic.name])


def delete_topics(cluster: Cluster, names: Sequence[str]) -> None:
    """Delete topics by name.

    Raises:
        ApiError: the first refusal. Of several topics, it names the refused and the deleted ones.
    """
    results: dict[str | None, tuple[int, str | None]] = {}
    for batch in batches(names):
        response = cluster.controller_request(
            DeleteTopicsRequest(
                topic_names=list(batch),
                topics=[DeleteTopicState(name=name) for name in batch],
                timeout_ms=cluster.request_timeout_ms,
            )
        )
        results |= {r.name: (r.error_code, r.error_message) for r in response.responses}
    cluster.invalidate_topics(names)
    _check_results(results, "Deleted")


def create_partitions(
    cluster: Cluster,
    counts: Mapping[str, int],
    assignments: Mapping[str, Sequence[Sequence[int]]] | None = None,
) -> None:
    """Increase topics to `counts` partitions. `assignments` has the replicas of the new ones.

    Raises:
        ApiError: the first refusal. Of several topics, it names the refused and the changed ones.
    """
    topics = []
    for name, count in counts.items():
        replica_lists = (assignments or {}).get(name)
        rows = (
            None
            if replica_lists is None
            else [CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in replica_lists]
        )
        topics.append(CreatePartitionsTopic(name=name, count=count, assignments=rows))
    results: dict[str | None, tuple[int, str | None]] = {}
    for batch in batches(topics):
        response = cluster.controller_request(
            CreatePartitionsRequest(topics=list(batch), timeout_ms=cluster.request_timeout_ms)
        )
        results |= {r.name: (r.error_code, r.error_message) for r in response.results}
    cluster.invalidate_topics(counts)
    _check_results(results, "Changed")


def _check_results(results: Mapping[str | None, tuple[int, str | None]], done: str) -> None:
    """Raise the first error of topics. `done` is the word for the topics without an error."""
    errors = {name: api_error(*result) for name, result in results.items() if result[0]}
    if not errors:
        return
    first = next(iter(errors.values()))
    if len(results) == 1:
        raise first
    others = [str(name) for name in results if name not in errors]
    lines = [f"Refused topics: {', '.join(map(str, errors))}"]
    lines.append(f"{done} topics: {', '.join(others) or 'none'}")
    raise ApiError(first.code, "\n".join([first.message, *lines]))
