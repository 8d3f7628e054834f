"""Creates, grows and deletes topics, for the admin APIs and auto-creation.

The checks, their order and messages are those of `kafka.server.ZkAdminManager` and
`kafka.zk.AdminZkClient`. Then the znodes are written, which the controller watches. Request
handlers wait for the new metadata.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from kafkapy.common.cluster_state import TopicDescription
from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.common.placement import BrokerPlace, assign_replicas
from kafkapy.common.ports import Random
from kafkapy.common.topic_configs import validate_topic_configs
from kafkapy.common.topic_partition import is_topic_name, names_collide, validate_topic_name
from kafkapy.common.uuid import Uuid
from kafkapy.metadata.cache import MetadataCache
from kafkapy.server.config.ineffective_configs import warn_of_topic_configs
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.zk.stores.store import ControllerMoved, ZkStore
from kafkapy.zk.zookeeper import BadVersion, NodeExists, NoNode

UNSET: Final = -1
CLUSTER_METADATA_TOPIC: Final = "__cluster_metadata"
PARTITIONS_PER_REQUEST_MAX: Final = 10_000

_log = logging.getLogger("kafka.server.ZkAdminManager")

Assignment = dict[int, tuple[int, ...]]
# Called with the number of partitions to create or delete. Raises ApiError to refuse them.
Charge = Callable[[int], None]


def no_charge(partitions: int) -> None:
    """The `Charge` of requests without a quota."""


class TopicDefaults(NamedTuple):
    """The broker configs for values that a request does not set."""

    num_partitions: int = 1
    replication_factor: int = 1
    delete_topic_enable: bool = True

    @classmethod
    def from_config(cls, config: KafkaConfig) -> TopicDefaults:
        """The defaults of a broker."""
        return cls(
            config.get_int("num.partitions"),
            config.get_int("default.replication.factor"),
            config.get_bool("delete.topic.enable"),
        )


class CreatedTopic(NamedTuple):
    """A topic that was created, or only validated. `configs` are its overrides."""

    name: str
    topic_id: Uuid
    assignment: Assignment
    configs: dict[str, str]

    @property
    def num_partitions(self) -> int:
        """The number of partitions."""
        return len(self.assignment)

    @property
    def replication_factor(self) -> int:
        """The number of replicas of each partition."""
        return len(self.assignment[0])


class TopicAdmin:
    """Topic operations on one broker; every refusal is an ApiError."""

    def __init__(
        self, store: ZkStore, metadata: MetadataCache, random: Random, defaults: TopicDefaults
    ) -> None:
        self._store = store
        self._metadata = metadata
        self._random = random
        self._defaults = defaults

    async def create_topic(
        self,
        name: str,
        num_partitions: int = UNSET,
        replication_factor: int = UNSET,
        assignment: Mapping[int, Sequence[int]] | None = None,
        configs: Mapping[str, str | None] | None = None,
        validate_only: bool = False,
        charge: Charge = no_charge,
    ) -> CreatedTopic:
        """Write a topic's config and its znode. -1 and no assignment mean the broker's defaults.

        Raises:
            ApiError: TOPIC_ALREADY_EXISTS, INVALID_TOPIC_EXCEPTION, INVALID_PARTITIONS,
                INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT, INVALID_CONFIG,
                INVALID_REQUEST; STALE_CONTROLLER_EPOCH when there is no controller.
        """
        if name == CLUSTER_METADATA_TOPIC:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited."
            )
        if self._metadata.image.topic(name) is not None:
            raise _topic_already_exists(name)
        overrides = _without_nulls(configs or {})
        if assignment and (num_partitions != UNSET or replication_factor != UNSET):
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                "Both numPartitions or replicationFactor and replicasAssignments were set."
                " Both cannot be used at the same time.",
            )
        _limit_partitions(len(assignment) if assignment else num_partitions)
        if assignment:
            replicas_by_partition = {
                index: tuple(replicas) for index, replicas in sorted(assignment.items())
            }
        else:
            replicas_by_partition = self._default_assignment(num_partitions, replication_factor)
        await self._validate_name(name)
        _validate_assignment(replicas_by_partition)
        _validate_configs(overrides)
        created = CreatedTopic(name, Uuid.random(self._random), replicas_by_partition, overrides)
        if not validate_only:
            charge(created.num_partitions)
            await self._write(created)
        return created

    async def delete_topic(
        self, name: str, charge: Charge = no_charge, topic_id: Uuid | None = None
    ) -> None:
        """Queue a topic for deletion. Repeated calls have no further effect. With `topic_id`, a
        topic with that name but another id is not deleted.

        Raises:
            ApiError: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, TOPIC_DELETION_DISABLED.
        """
        if not self._defaults.delete_topic_enable:
            raise ApiError(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
        # A name with a slash leads to a znode of another topic.
        if not is_topic_name(name) or not await self._store.topics.exists(name):
            raise ApiError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                "This server does not host this topic-partition.",
            )
        if topic_id is not None:
            stored = await self._store.topics.get(name)
            if stored is None or stored.topic_id != topic_id:
                raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
        known = self._metadata.image.topic(name)
        charge(0 if known is None else len(known.partitions))
        try:
            await self._store.requests.request_topic_deletion(name)
        except NodeExists:
            return

    async def create_partitions(
        self,
        name: str,
        count: int,
        assignments: Sequence[Sequence[int]] | None = None,
        validate_only: bool = False,
        charge: Charge = no_charge,
    ) -> Assignment:
        """Grow a topic to `count` partitions; `assignments` are for the new ones. Returns the
        assignment of the new ones.

        Raises:
            ApiError: UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION (being deleted),
                REASSIGNMENT_IN_PROGRESS, INVALID_PARTITIONS, INVALID_REPLICA_ASSIGNMENT,
                INVALID_REPLICATION_FACTOR.
        """
        if not is_topic_name(name):
            raise _unknown_topic(name)
        if await self._store.requests.is_queued_for_deletion(name):
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion.")
        topic = await self._store.topics.get(name)
        if topic is None or not topic.assignment:
            raise _unknown_topic(name)
        if topic.adding_replicas or topic.removing_replicas:
            raise ApiError(
                ErrorCode.REASSIGNMENT_IN_PROGRESS,
                f"A partition reassignment is in progress for the topic '{name}'.",
            )
        increment = _increment(len(topic.assignment), count)
        _limit_partitions(increment)
        brokers = [
            BrokerPlace(broker_id, registration.broker.rack)
            for broker_id, registration in sorted((await self._store.brokers.get_all()).items())
        ]
        if assignments is None:
            new_assignment = _place_new_partitions(topic, brokers, increment)
        else:
            new_assignment = _validate_new_partitions(topic, brokers, increment, assignments)
        if not validate_only:
            charge(increment)
            _log.info("Creating %d partitions for '%s': %s", increment, name, new_assignment)
            try:
                await self._add_partitions(topic, new_assignment)
            except BadVersion:
                # The topic has changed since it was read, perhaps by a reassignment. Read it again.
                return await self.create_partitions(name, count, assignments)
        return new_assignment

    def _default_assignment(self, num_partitions: int, replication_factor: int) -> Assignment:
        """The default placement over the live brokers, from a random start."""
        brokers = [
            BrokerPlace(broker_id, broker.rack)
            for broker_id, broker in sorted(self._metadata.image.brokers.items())
        ]
        defaults = self._defaults
        n = max(len(brokers), 1)
        return assign_replicas(
            brokers,
            defaults.num_partitions if num_partitions == UNSET else num_partitions,
            defaults.replication_factor if replication_factor == UNSET else replication_factor,
            start_index=self._random.below(n),
            shift=self._random.below(n),
        )

    async def _validate_name(self, name: str) -> None:
        validate_topic_name(name)
        if await self._store.topics.exists(name):
            raise _topic_already_exists(name)
        if await self._store.requests.is_queued_for_deletion(name):
            raise ApiError(
                ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' is marked for deletion."
            )
        if "." in name or "_" in name:
            others = await self._store.topics.names()
            colliding = [other for other in others if names_collide(name, other)]
            if colliding:
                raise ApiError(
                    ErrorCode.INVALID_TOPIC_EXCEPTION,
                    f"Topic '{name}' collides with existing topics: {', '.join(colliding)}",
                )

    async def _write(self, created: CreatedTopic) -> None:
        """Create the topic and its configs in one transaction."""
        _log.info(
            "Creating topic %s with configuration %s and initial partition assignment %s",
            created.name,
            created.configs,
            created.assignment,
        )
        topic = TopicDescription(created.name, created.topic_id, created.assignment)
        try:
            warn_of_topic_configs(created.name, created.configs)
            await self._store.create_topic(topic, created.configs)
        except ControllerMoved as moved:
            raise ApiError(ErrorCode.STALE_CONTROLLER_EPOCH, str(moved)) from moved
        except NodeExists:
            raise _topic_already_exists(created.name) from None

    async def _add_partitions(self, topic: TopicDescription, new_assignment: Assignment) -> None:
        updated = TopicDescription(
            topic.topic, topic.topic_id, {**topic.assignment, **new_assignment}
        )
        try:
            await self._store.topics.update(updated, topic)
        except NoNode:
            raise _unknown_topic(topic.topic) from None


def _topic_already_exists(name: str) -> ApiError:
    return ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")


def _unknown_topic(name: str) -> ApiError:
    return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")


def _bad_assignment(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def _without_nulls(configs: Mapping[str, str | None]) -> dict[str, str]:
    nulls = [name for name, value in configs.items() if value is None]
    if nulls:
        raise ApiError(
            ErrorCode.INVALID_CONFIG,
            f"Null value not supported for topic configs: {','.join(nulls)}",
        )
    return {name: value for name, value in configs.items() if value is not None}


def _validate_assignment(assignment: Assignment) -> None:
    if (
        len({len(replicas) for replicas in assignment.values()}) != 1
        or not assignment[min(assignment)]
    ):
        raise _bad_assignment("All partitions should have the same number of replicas")
    if any(len(replicas) != len(set(replicas)) for replicas in assignment.values()):
        raise _bad_assignment(f"Duplicate replica assignment found: {assignment}")
    if sorted(assignment) != list(range(len(assignment))):
        raise _bad_assignment("partitions should be a consecutive 0-based integer sequence")


def _validate_configs(configs: Mapping[str, str]) -> None:
    try:
        validate_topic_configs(configs)
    except ConfigError as error:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(error)) from error


def _limit_partitions(partitions: int) -> None:
    """Refuse more new partitions than can be placed and written in one step.

    The limit, error code and message are those of Kafka 4's controller
    (`MAX_PARTITIONS_PER_BATCH`). Kafka 3.9 with ZooKeeper has no limit: a request for 2^31-1
    partitions takes all memory.
    """
    if partitions > PARTITIONS_PER_REQUEST_MAX:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )


def _increment(old: int, count: int) -> int:
    if count < old:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"Topic currently has {old} partitions, which is higher than the requested {count}.",
        )
    if count == old:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {old} partitions.")
    return count - old


def _place_new_partitions(
    topic: TopicDescription, brokers: Sequence[BrokerPlace], increment: int
) -> Assignment:
    """Place new partitions. The placement starts at partition 0's preferred leader in the list of
    brokers.
    """
    first = topic.assignment[0]
    start = next((i for i, broker in enumerate(brokers) if broker.broker_id >= first[0]), 0)
    return assign_replicas(
        brokers,
        increment,
        len(first),
        start_index=start,
        shift=start,
        start_partition=len(topic.assignment),
    )


def _validate_new_partitions(
    topic: TopicDescription,
    brokers: Sequence[BrokerPlace],
    increment: int,
    assignments: Sequence[Sequence[int]],
) -> Assignment:
    """Check an explicit assignment of new partitions, and return it by partition."""
    live = {broker.broker_id for broker in brokers}
    unknown = sorted({replica for replicas in assignments for replica in replicas} - live)
    if unknown:
        raise _bad_assignment(
            f"Unknown broker(s) in replica assignment: {', '.join(map(str, unknown))}."
        )
    if len(assignments) != increment:
        raise _bad_assignment(
            f"Increasing the number of partitions by {increment} but {len(assignments)}"
            " assignments provided."
        )
    old, expected = len(topic.assignment), len(topic.assignment[0])
    new_assignment = {old + i: tuple(replicas) for i, replicas in enumerate(assignments)}
    for partition, replicas in new_assignment.items():
        if not replicas:
            raise _bad_assignment(
                f"Cannot have replication factor of 0 for partition id {partition}."
            )
        if len(replicas) != len(set(replicas)):
            raise _bad_assignment(
                "Duplicate brokers not allowed in replica assignment:"
                f" {', '.join(map(str, replicas))} for partition id {partition}."
            )
    uneven = {
        p: len(replicas) for p, replicas in new_assignment.items() if len(replicas) != expected
    }
    if uneven:
        raise _bad_assignment(
            "Inconsistent replication factor between partitions, partition 0 has"
            f" {expected} while partitions [{', '.join(map(str, uneven))}] have replication"
            f" factors [{', '.join(map(str, uneven.values()))}], respectively."
        )
    return new_assignment
