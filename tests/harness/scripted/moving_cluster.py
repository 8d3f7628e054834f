"""A scripted cluster whose partitions really move, for tests of the reassignment tools.

    cluster = MovingCluster({"t": [[1, 2], [2, 3]]})
    kafkapy("reassign", ..., cluster=cluster.scripted)

A move is complete after `polls_left` further requests for the running moves; 0 is never. Brokers of
`down` are not alive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafkapy.common.config_def import ConfigSource
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kafkapy.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from kafkapy.protocol.messages.describe_configs import (
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kafkapy.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kafkapy.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from kafkapy.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata
from tests.harness.scripted.scripted_topics import config_entry

PORT = 9000
SIZE_BYTES = 1000


class Move:
    """One running reassignment."""

    def __init__(self, origin: list[int], target: list[int], polls_left: int) -> None:
        self.origin = origin
        self.target = target
        self.polls_left = polls_left

    @property
    def adding(self) -> list[int]:
        return [b for b in self.target if b not in self.origin]

    @property
    def removing(self) -> list[int]:
        return [b for b in self.origin if b not in self.target]

    @property
    def replicas(self) -> list[int]:
        return [*self.target, *self.removing]


class MovingCluster:
    """A scripted cluster whose partitions move.

    `configs` are by (resource type, name); `places` are (current, future) directories by
    (partition, broker); `refuse` are error codes and messages by partition. So many responses
    with metadata as `stale_answers` still have the replicas of moves that are complete.
    """

    def __init__(
        self,
        topics: Mapping[str, Sequence[Sequence[int]]],
        *,
        brokers: Sequence[int] = (1, 2, 3, 4),
        down: Sequence[int] = (),
        polls_left: int = 1,
        racks: Mapping[int, str] | None = None,
    ) -> None:
        self.replicas = {
            TopicPartition(name, index): list(row)
            for name, rows in topics.items()
            for index, row in enumerate(rows)
        }
        self.brokers = [b for b in brokers if b not in down]
        self.racks = racks or {}
        self.polls_left = polls_left
        self.running: dict[TopicPartition, Move] = {}
        self._ended: dict[TopicPartition, Move] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.places: dict[tuple[TopicPartition, int], tuple[str, str | None]] = {}
        self.refuse: dict[TopicPartition, tuple[int, str]] = {}
        self.stale_answers = 0
        self.log_dir_errors: dict[tuple[TopicPartition, int], list[int]] = {}
        self.scripted = ScriptedCluster(
            {
                ApiKey.METADATA: self._metadata,
                ApiKey.LIST_PARTITION_REASSIGNMENTS: self._list,
                ApiKey.ALTER_PARTITION_REASSIGNMENTS: self._alter,
                ApiKey.DESCRIBE_CONFIGS: self._describe_configs,
                ApiKey.INCREMENTAL_ALTER_CONFIGS: self._alter_configs,
                ApiKey.DESCRIBE_LOG_DIRS: self._log_dirs,
                ApiKey.ALTER_REPLICA_LOG_DIRS: self._alter_log_dirs,
            }
        )
        self.scripted.refuse = {PORT + b for b in down}

    def begin(self, tp: TopicPartition, target: Sequence[int], polls_left: int) -> None:
        """Start a partition's reassignment to `target`."""
        self.running[tp] = Move(self.replicas[tp], list(target), polls_left)

    def delete(self, name: str) -> None:
        """Delete a topic, its moves and its configs."""
        for tp in [tp for tp in self.replicas if tp.topic == name]:
            del self.replicas[tp]
            self.running.pop(tp, None)
        self.configs.pop((2, name), None)

    def set_config(self, kind: int, name: str, **configs: str) -> None:
        """Set dynamic configs; underscores stand for dots."""
        values = {key.replace("_", "."): value for key, value in configs.items()}
        self.configs.setdefault((kind, name), {}).update(values)

    def now(self) -> dict[str, list[list[int]]]:
        """Replicas by topic."""
        found: dict[str, list[list[int]]] = {}
        for tp in sorted(self.replicas):
            found.setdefault(tp.topic, []).append(self.replicas[tp])
        return found

    def _metadata(self, request: Any, port: int) -> Any:
        topics: dict[str, dict[int, tuple[int, list[int], list[int]]]] = {}
        self.stale_answers -= 1
        if self.stale_answers < 0:
            self._ended.clear()
        for tp, replicas in self.replicas.items():
            move = self.running.get(tp) or self._ended.get(tp)
            shown = move.replicas if move else replicas
            alive = [b for b in replicas if b in self.brokers]
            leader = alive[0] if alive else -1
            topics.setdefault(tp.topic, {})[tp.partition] = (leader, shown, alive)
        ports = {b: PORT + b for b in self.brokers}
        answer = metadata(topics, brokers=ports, controller=self.brokers[0])(request, port)
        for broker in answer.brokers:
            broker.rack = self.racks.get(broker.node_id)
        return answer

    def _list(self, request: Any, port: int) -> ListPartitionReassignmentsResponse:
        asked = None
        if request.topics is not None:
            asked = {TopicPartition(t.name, p) for t in request.topics for p in t.partition_indexes}
        topics = [
            OngoingTopicReassignment(
                name=tp.topic,
                partitions=[
                    OngoingPartitionReassignment(
                        partition_index=tp.partition,
                        replicas=move.replicas,
                        adding_replicas=move.adding,
                        removing_replicas=move.removing,
                    )
                ],
            )
            for tp, move in self.running.items()
            if asked is None or tp in asked
        ]
        for tp, move in list(self.running.items()):
            move.polls_left -= 1
            if move.polls_left == 0:
                self.replicas[tp] = move.target
                self._ended[tp] = self.running.pop(tp)
        return ListPartitionReassignmentsResponse(topics=topics)

    def _alter(self, request: Any, port: int) -> AlterPartitionReassignmentsResponse:
        answer = AlterPartitionReassignmentsResponse()
        for topic in request.topics:
            rows = []
            for wanted in topic.partitions:
                tp = TopicPartition(topic.name, wanted.partition_index)
                code, message = self.refuse.get(tp, (0, None))
                row = ReassignablePartitionResponse(
                    partition_index=tp.partition, error_code=code, error_message=message
                )
                rows.append(row)
                if not code and wanted.replicas is None:
                    del self.running[tp]
                elif not code:
                    self.begin(tp, wanted.replicas, self.polls_left)
            answer.responses.append(ReassignableTopicResponse(name=topic.name, partitions=rows))
        return answer

    def _describe_configs(self, request: Any, port: int) -> DescribeConfigsResponse:
        sources = {2: ConfigSource.DYNAMIC_TOPIC_CONFIG, 4: ConfigSource.DYNAMIC_BROKER_CONFIG}
        return DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(
                    resource_type=r.resource_type,
                    resource_name=r.resource_name,
                    configs=[
                        config_entry(key, value, sources[r.resource_type])
                        for key, value in self.configs.get(
                            (r.resource_type, r.resource_name), {}
                        ).items()
                    ],
                )
                for r in request.resources
            ]
        )

    def _alter_configs(self, request: Any, port: int) -> IncrementalAlterConfigsResponse:
        topics = {tp.topic for tp in self.replicas}
        unknown = {
            r.resource_name
            for r in request.resources
            if r.resource_type == 2 and r.resource_name not in topics
        }
        for resource in request.resources:
            if resource.resource_name in unknown:
                continue
            if resource.resource_type == 4:
                assert port == PORT + int(resource.resource_name), "each broker its own"
            held = self.configs.setdefault((resource.resource_type, resource.resource_name), {})
            for config in resource.configs:
                if config.config_operation == 0:
                    held[config.name] = config.value
                else:
                    held.pop(config.name, None)
            if not held:
                del self.configs[resource.resource_type, resource.resource_name]
        return IncrementalAlterConfigsResponse(
            responses=[
                AlterConfigsResourceResponse(
                    error_code=3 if r.resource_name in unknown else 0,
                    resource_type=r.resource_type,
                    resource_name=r.resource_name,
                )
                for r in request.resources
            ]
        )

    def _log_dirs(self, request: Any, port: int) -> DescribeLogDirsResponse:
        broker_id = port - PORT
        dirs: dict[str, list[tuple[TopicPartition, bool]]] = {"/d": []}
        for tp, replicas in self.replicas.items():
            if broker_id in replicas:
                current, future = self.places.get((tp, broker_id), ("/d", None))
                dirs.setdefault(current, []).append((tp, False))
                if future:
                    dirs.setdefault(future, []).append((tp, True))
        return DescribeLogDirsResponse(
            results=[
                DescribeLogDirsResult(
                    log_dir=path,
                    topics=[
                        DescribeLogDirsTopic(
                            name=tp.topic,
                            partitions=[
                                DescribeLogDirsPartition(
                                    partition_index=tp.partition,
                                    partition_size=SIZE_BYTES // 4 if is_future else SIZE_BYTES,
                                    is_future_key=is_future,
                                )
                            ],
                        )
                        for tp, is_future in rows
                    ],
                )
                for path, rows in dirs.items()
            ]
        )

    def _alter_log_dirs(self, request: Any, port: int) -> AlterReplicaLogDirsResponse:
        results = []
        for wanted in request.dirs:
            for topic in wanted.topics:
                rows = []
                for index in topic.partitions:
                    key = TopicPartition(topic.name, index), port - PORT
                    errors = self.log_dir_errors.get(key, [])
                    code = errors.pop(0) if errors else 0
                    if not code:
                        current = self.places.get(key, ("/d", None))[0]
                        self.places[key] = (
                            current,
                            wanted.path if wanted.path != current else None,
                        )
                    rows.append(
                        AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                    )
                results.append(
                    AlterReplicaLogDirTopicResult(topic_name=topic.name, partitions=rows)
                )
        return AlterReplicaLogDirsResponse(results=results)
