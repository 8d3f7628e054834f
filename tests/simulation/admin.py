"""Administrative client of the simulated cluster, which sends its requests over the wire."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.messages import (
    alter_client_quotas,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    create_partitions,
    create_topics,
    delete_records,
    delete_topics,
    elect_leaders,
    incremental_alter_configs,
    metadata,
    update_features,
)
from kafkapy.server.interbroker.node_client import NodeUnavailable
from tests.simulation.clients import Client, Refused
from tests.simulation.cluster import (
    OTHER_TOPIC_PREFIX,
    RETAINED,
    RETENTION_BYTES,
    TABLE,
    TOPIC,
    TRIMMED,
)
from tests.simulation.tables import CONFIGS

if TYPE_CHECKING:
    from tests.simulation.cluster import Cluster

_NONE: Final = int(ErrorCode.NONE)
_WAIT_MS: Final = 1000
_PREFERRED, _UNCLEAN = 0, 1
_TOPIC_RESOURCE, _BROKER_RESOURCE, _SET = 2, 4, 0
_UNSAFE_DOWNGRADE: Final = 3
_THROTTLED: Final = {
    "leader.replication.throttled.replicas": "*",
    "follower.replication.throttled.replicas": "*",
}
_REPLICATION_RATES: Final = {
    "leader.replication.throttled.rate": "5000",
    "follower.replication.throttled.rate": "5000",
    "replica.alter.log.dirs.io.max.bytes.per.second": "200",
}
_MOVES_END: Final = {"replica.alter.log.dirs.io.max.bytes.per.second": "10000000"}
_CLIENT_RATES: Final = {"producer_byte_rate": 1500.0, "consumer_byte_rate": 6000.0}
_RETENTION: Final = {
    "retention.bytes": str(RETENTION_BYTES),
    "segment.bytes": "500",
    "file.delete.delay.ms": "300",
}


class Admin(Client):
    """Sends one change after another, each once. A lost response leaves two possible outcomes."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster.world, "admin")
        self.cluster = cluster
        self.is_busy = False
        self._topics_made = 0

    def begin(self, work: Any) -> None:
        """Run one change, unless one is in progress."""
        self.is_busy = True

        async def run() -> None:
            try:
                await work
            except (NodeUnavailable, Refused):
                self.world.counts["administrative requests without an answer"] += 1
            self.is_busy = False

        self.spawn(run())

    async def _send_to_controller(self, request: Any, version: int) -> Any:
        wanted = metadata.MetadataRequest(topics=[])
        known = await self.node(self.any_broker()).request(wanted, 8)
        if known.controller_id < 0:
            raise Refused("no controller")
        return await self.node(known.controller_id).request(request, version)

    # topics

    async def create_main_topics(self) -> None:
        """Create the topics under test, with as many attempts as it takes."""
        plan = self.cluster.plan
        wanted: list[tuple[str, int, dict[str, str]]] = [(TOPIC, plan.partitions, {})]
        if plan.trims:
            wanted.append((TRIMMED, 1, {}))
        if plan.compacts:
            wanted.append((TABLE, 1, CONFIGS))
        if plan.retains:
            wanted.append((RETAINED, 1, _RETENTION))
        throttled = _THROTTLED if plan.throttles else {}
        for name, partitions, configs in wanted:
            rows = (name, partitions, plan.replication_factor, configs | throttled)
            await self._until_done(lambda rows=rows: self._create(*rows))  # type: ignore[misc]
        for topic_partition in self.cluster.partitions():
            assigned = self.cluster.assignment(topic_partition)
            assert assigned is not None
            self.cluster.targets[topic_partition] = [assigned]
        if plan.has_other_topics:
            await self._until_done(self._create_other)
        if plan.throttles:
            await self._until_done(self._throttle)
        if plan.caps_transactions:
            await self._until_done(self._cap_transactions)

    async def _until_done(self, step: Callable[[], Awaitable[int]]) -> None:
        """Repeat `step`, which returns an error code, until it has an effect."""
        while not self.is_stopping:
            with suppress(NodeUnavailable, Refused):
                if await step() in (_NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                    return
            await self.pause(50, 200)

    async def _throttle(self) -> int:
        """Set quotas for all clients, and limits for replication and moves between directories."""
        entity = alter_client_quotas.EntityData(entity_type="client-id", entity_name=None)
        ops = [alter_client_quotas.OpData(key=k, value=v) for k, v in _CLIENT_RATES.items()]
        entry = alter_client_quotas.EntryData(entity=[entity], ops=ops)
        request = alter_client_quotas.AlterClientQuotasRequest(entries=[entry])
        response = await self.node(self.any_broker()).request(request, 1)
        code = int(response.entries[0].error_code)
        return code or await self._alter_configs(_BROKER_RESOURCE, "", _REPLICATION_RATES)

    async def lift_move_limit(self) -> None:
        """Lift the limit on moves between directories."""
        if self.cluster.plan.throttles:
            await self._until_done(lambda: self._alter_configs(_BROKER_RESOURCE, "", _MOVES_END))

    async def _cap_transactions(self) -> int:
        """Set transaction version 1, in which producers are fenced by a separate epoch."""
        row = update_features.FeatureUpdateKey(
            feature="transaction.version", max_version_level=1, upgrade_type=_UNSAFE_DOWNGRADE
        )
        request = update_features.UpdateFeaturesRequest(timeout_ms=_WAIT_MS, feature_updates=[row])
        return int((await self._send_to_controller(request, 1)).error_code)

    async def _create(
        self,
        name: str,
        partitions: int,
        replication_factor: int,
        configs: Mapping[str, str] | None = None,
    ) -> int:
        topic = create_topics.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replication_factor,
            configs=[
                create_topics.CreatableTopicConfig(name=key, value=value)
                for key, value in (configs or {}).items()
            ],
        )
        request = create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=_WAIT_MS)
        response = await self._send_to_controller(request, 7)
        return int(response.topics[0].error_code)

    async def create_topic(self) -> None:
        """Create another topic, which no client writes to, perhaps under an earlier name."""
        await self._create_other()

    async def _create_other(self) -> int:
        number = self.world.random.randrange(self._topics_made + 1)
        if number == self._topics_made:
            self._topics_made += 1
        return await self._create(f"{OTHER_TOPIC_PREFIX}{number}", 2, 2)

    async def create_on(self, broker_ids: Sequence[int]) -> None:
        """Create a topic with its one partition on these brokers, dead ones included."""
        row = create_topics.CreatableReplicaAssignment(
            partition_index=0, broker_ids=list(broker_ids)
        )
        topic = create_topics.CreatableTopic(
            name=f"placed-{self.world.events.now_us}",
            num_partitions=-1,
            replication_factor=-1,
            assignments=[row],
        )
        request = create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=_WAIT_MS)
        response = await self._send_to_controller(request, 7)
        code = ErrorCode(response.topics[0].error_code)
        self.world.trace.note("admin", f"create {topic.name} on {broker_ids}: {code.name}")

    async def grow_topic(self, name: str) -> None:
        """Add one partition to a topic."""
        count = 1 + sum(at.topic == name for at in self.cluster.partitions())
        topic = create_partitions.CreatePartitionsTopic(name=name, count=count, assignments=None)
        request = create_partitions.CreatePartitionsRequest(topics=[topic], timeout_ms=_WAIT_MS)
        await self._send_to_controller(request, 3)

    async def delete_topic(self, name: str) -> None:
        topic = delete_topics.DeleteTopicState(name=name)
        request = delete_topics.DeleteTopicsRequest(topics=[topic], timeout_ms=_WAIT_MS)
        await self._send_to_controller(request, 6)

    async def delete_records(self, offset: int) -> None:
        """Delete the records of the trimmed topic below an offset."""
        at = TopicPartition(TRIMMED, 0)
        self.cluster.history.trim(at, offset)
        leader = await self.leader(*at)
        row = delete_records.DeleteRecordsPartition(partition_index=at.partition, offset=offset)
        topic = delete_records.DeleteRecordsTopic(name=at.topic, partitions=[row])
        request = delete_records.DeleteRecordsRequest(topics=[topic], timeout_ms=_WAIT_MS)
        response = await self.node(leader).request(request, 2)
        code = ErrorCode(response.topics[0].partitions[0].error_code)
        self.world.trace.note("admin", f"delete {at} below {offset}: {code.name}")
        if code is ErrorCode.NONE:
            self.world.counts["deletions of records confirmed"] += 1

    async def change_config(self, segment_bytes: int) -> None:
        """Change the segment size of the topic under test."""
        if await self._alter_configs(_TOPIC_RESOURCE, TOPIC, {"segment.bytes": str(segment_bytes)}):
            return
        self.world.counts["configs changed"] += 1

    async def _alter_configs(self, kind: int, name: str, configs: Mapping[str, str]) -> int:
        """Set configs of a topic, or of all brokers; returns the error code."""
        rows = [
            incremental_alter_configs.AlterableConfig(name=key, config_operation=_SET, value=value)
            for key, value in configs.items()
        ]
        resource = incremental_alter_configs.AlterConfigsResource(
            resource_type=kind, resource_name=name, configs=rows
        )
        request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])
        response = await self.node(self.any_broker()).request(request, 1)
        return int(response.responses[0].error_code)

    # partitions

    async def move(self, broker_id: int, at: TopicPartition, path: str) -> None:
        """Move a replica to another log directory of its broker."""
        topic = alter_replica_log_dirs.AlterReplicaLogDirTopic(
            name=at.topic, partitions=[at.partition]
        )
        row = alter_replica_log_dirs.AlterReplicaLogDir(path=path, topics=[topic])
        request = alter_replica_log_dirs.AlterReplicaLogDirsRequest(dirs=[row])
        response = await self.node(broker_id).request(request, 2)
        code = ErrorCode(response.results[0].partitions[0].error_code)
        self.world.trace.note("admin", f"{at} of broker {broker_id} to {path}: {code.name}")
        if code is ErrorCode.NONE:
            self.world.counts["moves to another directory confirmed"] += 1

    async def elect(self, unclean: bool) -> None:
        """Elect leaders of all partitions of the topic under test."""
        partitions = list(range(self.cluster.plan.partitions))
        request = elect_leaders.ElectLeadersRequest(
            election_type=_UNCLEAN if unclean else _PREFERRED,
            topic_partitions=[elect_leaders.TopicPartitions(topic=TOPIC, partitions=partitions)],
            timeout_ms=_WAIT_MS,
        )
        await self._send_to_controller(request, 2)

    async def reassign(self, topic_partition: TopicPartition, target: Sequence[int] | None) -> None:
        """Move a partition, or (None) cancel its move."""
        before = self.cluster.targets.setdefault(topic_partition, [])
        outcome = tuple(target) if target is not None else self._origin(topic_partition)
        self.cluster.targets[topic_partition] = [*before, outcome]
        row = alter_partition_reassignments.ReassignablePartition(
            partition_index=topic_partition.partition,
            replicas=None if target is None else list(target),
        )
        topic = alter_partition_reassignments.ReassignableTopic(
            name=topic_partition.topic, partitions=[row]
        )
        request = alter_partition_reassignments.AlterPartitionReassignmentsRequest(
            timeout_ms=_WAIT_MS, topics=[topic]
        )
        response = await self._send_to_controller(request, 0)
        if response.error_code != _NONE:
            return
        code = response.responses[0].partitions[0].error_code
        if code == _NONE:
            # A cancelled move may have begun after the cancellation was sent. Its replicas that
            # stay come first, as in Kafka.
            moves = before if target is None else []
            ends = [tuple(b for b in (*move, *outcome) if b in outcome) for move in moves]
            self.cluster.targets[topic_partition] = [
                outcome,
                *(tuple(dict.fromkeys(end)) for end in ends),
            ]
        elif code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS:
            self.cluster.targets[topic_partition] = before
        self.world.trace.note("admin", f"{topic_partition} to {target}: {ErrorCode(code).name}")

    def _origin(self, topic_partition: TopicPartition) -> tuple[int, ...]:
        """The assignment of a partition before its move: without the replicas being added."""
        assigned = self.cluster.assignment(topic_partition) or ()
        topic = self.cluster.znode(f"/brokers/topics/{topic_partition.topic}") or {}
        moving = topic.get("adding_replicas") or {}
        assert isinstance(moving, dict)
        adding = moving.get(str(topic_partition.partition), [])
        return tuple(b for b in assigned if b not in adding)
