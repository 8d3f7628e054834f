"""Topics created, grown and deleted: znodes, and every refusal in Kafka's words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kafkapy.common.cluster_state import TopicDescription
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.server.admin.topic_admin import TopicAdmin, TopicDefaults
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.stores.topic_store import TopicStore
from kafkapy.zk.zookeeper import WatchEvent
from tests.harness.cores.controllers import topic_id
from tests.harness.cores.ports import CountingRandom, SeededRandom
from tests.harness.cores.znodes import AnswerLosingZooKeeper, run, server
from tests.harness.scripted import admins

TWO_OF_EACH = TopicDefaults(2, 2)


def admin(
    store: ZkStore,
    topics: tuple[str, ...] = (),
    brokers: tuple[int, ...] = (1, 2, 3),
    defaults: TopicDefaults = TWO_OF_EACH,
) -> TopicAdmin:
    return TopicAdmin(store, admins.metadata(topics, brokers), CountingRandom(), defaults)


def refused(coroutine: Any) -> tuple[ErrorCode, str]:
    with pytest.raises(ApiError) as error:
        run(coroutine)
    return error.value.code, error.value.message


def test_config_first_then_the_topic() -> None:
    store = admins.store()
    order: list[str] = []

    def note(event: WatchEvent) -> None:
        order.append(event.path)

    for path in ("/brokers/topics/t", "/config/topics/t"):
        run(store.zookeeper.exists(path, note))
    made = run(admin(store).create_topic("t", configs={"retention.ms": "5"}))
    assert order == ["/config/topics/t", "/brokers/topics/t"]
    assert made.assignment == {0: (1, 3), 1: (2, 1)}
    assert (made.num_partitions, made.replication_factor) == (2, 2)
    assert made.configs == {"retention.ms": "5"}
    assert run(store.topics.get("t")) == TopicDescription("t", made.topic_id, made.assignment)
    assert run(store.configs.get("topics", "t")) == {"retention.ms": "5"}
    assert run(store.configs.changes()) == []


def test_an_empty_config_node_is_written_too() -> None:
    store = admins.store()
    run(admin(store).create_topic("t"))
    data = run(store.zookeeper.get("/config/topics/t")).data
    assert data == b'{"version":1,"config":{}}'


def test_validate_only_writes_nothing() -> None:
    store = admins.store()
    made = run(admin(store).create_topic("t", 3, 1, validate_only=True))
    assert made.num_partitions == 3
    assert run(store.topics.names()) == []
    assert run(store.zookeeper.children("/config/topics")) == []


def test_an_explicit_assignment_may_name_unknown_brokers() -> None:
    store = admins.store()
    made = run(admin(store).create_topic("t", assignment={1: [9, 1], 0: [1, 2]}))
    assert made.assignment == {0: (1, 2), 1: (9, 1)}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            {"name": "__cluster_metadata"},
            ErrorCode.INVALID_REQUEST,
            "Creation of internal topic __cluster_metadata is prohibited.",
        ),
        ({"name": "known"}, ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'known' already exists."),
        ({"name": "stored"}, ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'stored' already exists."),
        (
            {"name": "dying"},
            ErrorCode.TOPIC_ALREADY_EXISTS,
            "Topic 'dying' is marked for deletion.",
        ),
        (
            {"name": "t", "configs": {"retention.ms": None, "a": "1"}},
            ErrorCode.INVALID_CONFIG,
            "Null value not supported for topic configs: retention.ms",
        ),
        (
            {"name": "t", "num_partitions": 1, "assignment": {0: [1]}},
            ErrorCode.INVALID_REQUEST,
            "Both numPartitions or replicationFactor and replicasAssignments were set. Both cannot"
            " be used at the same time.",
        ),
        (
            {"name": "t", "num_partitions": 0},
            ErrorCode.INVALID_PARTITIONS,
            "Number of partitions must be larger than 0.",
        ),
        (
            {"name": "t", "replication_factor": 4},
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor: 4 larger than available brokers: 3.",
        ),
        (
            {"name": "a b"},
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: 'a b' contains one or more characters other than ASCII"
            " alphanumerics, '.', '_' and '-'",
        ),
        (
            {"name": "a.b"},
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic 'a.b' collides with existing topics: a_b",
        ),
        (
            {"name": "t", "assignment": {0: [1, 2], 1: [1]}},
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "All partitions should have the same number of replicas",
        ),
        (
            {"name": "t", "assignment": {0: [1, 1]}},
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Duplicate replica assignment found: {0: (1, 1)}",
        ),
        (
            {"name": "t", "assignment": {0: [1], 2: [1]}},
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            {"name": "t", "configs": {"retention": "1"}},
            ErrorCode.INVALID_CONFIG,
            "Unknown topic config name: retention",
        ),
        (
            {"name": "t", "configs": {"retention.ms": "soon"}},
            ErrorCode.INVALID_CONFIG,
            "Invalid value soon for configuration retention.ms: Not a number of type LONG (64-bit"
            " integer)",
        ),
    ],
)
def test_creation_refused(arguments: dict[str, Any], code: ErrorCode, message: str) -> None:
    store = admins.store()
    for name in ("stored", "a_b"):
        run(store.topics.create(TopicDescription(name, topic_id(1), {0: (1,)})))
    run(store.requests.request_topic_deletion("dying"))
    before = run(store.topics.names())
    assert refused(admin(store, ("known",)).create_topic(**arguments)) == (code, message)
    assert run(store.topics.names()) == before
    assert run(store.zookeeper.children("/config/topics")) == []


def test_without_a_controller_creation_can_be_tried_again_later() -> None:
    store = admins.store(controller=False)
    code, _ = refused(admin(store).create_topic("t"))
    assert code is ErrorCode.STALE_CONTROLLER_EPOCH
    assert run(store.topics.names()) == []


def test_without_brokers_there_is_nowhere_to_put_it() -> None:
    store = admins.store(())
    code, message = refused(admin(store, brokers=()).create_topic("t"))
    assert code is ErrorCode.INVALID_REPLICATION_FACTOR
    assert message == "Replication factor: 2 larger than available brokers: 0."


def test_deletion_is_queued_once() -> None:
    store = admins.store()
    run(admin(store).create_topic("t"))
    for _ in range(2):
        run(admin(store).delete_topic("t"))
    assert run(store.requests.topic_deletions()) == ["t"]
    code, _ = refused(admin(store).delete_topic("x"))
    assert code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    disabled = admin(store, defaults=TopicDefaults(delete_topic_enable=False))
    assert refused(disabled.delete_topic("t")) == (
        ErrorCode.TOPIC_DELETION_DISABLED,
        "Topic deletion is disabled.",
    )


def test_another_topic_of_the_name_is_not_deleted() -> None:
    store = admins.store()
    made = run(admin(store).create_topic("t"))
    refusal = refused(admin(store).delete_topic("t", topic_id=topic_id(9)))
    assert refusal[0] is ErrorCode.UNKNOWN_TOPIC_ID
    assert run(store.requests.topic_deletions()) == []
    run(admin(store).delete_topic("t", topic_id=made.topic_id))
    assert run(store.requests.topic_deletions()) == ["t"]


def test_what_is_made_and_deleted_is_charged_for_by_the_partition() -> None:
    store = admins.store()
    charged: list[int] = []
    run(admin(store).create_topic("t", 3, 1, charge=charged.append))
    run(admin(store).create_topic("u", 9, 1, validate_only=True, charge=charged.append))
    run(admin(store).create_partitions("t", 5, charge=charged.append))
    run(admin(store).create_partitions("t", 9, validate_only=True, charge=charged.append))
    run(admin(store, ("t",)).delete_topic("t", charged.append))
    assert charged == [3, 2, len(admins.metadata(("t",), (1,)).image.topics["t"].partitions)]


def test_what_is_refused_by_a_quota_is_not_written() -> None:
    store = admins.store()
    run(admin(store).create_topic("t", 1, 1))

    def charge(partitions: int) -> None:
        raise ApiError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)

    for work in (
        admin(store).create_topic("u", 1, 1, charge=charge),
        admin(store).create_partitions("t", 2, charge=charge),
        admin(store).delete_topic("t", charge),
    ):
        assert refused(work)[0] is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert run(store.topics.names()) == ["t"]
    topic = run(store.topics.get("t"))
    assert topic is not None
    assert len(topic.assignment) == 1
    assert run(store.requests.topic_deletions()) == []


def test_growing_goes_on_behind_partition_zero() -> None:
    store = admins.store()
    run(admin(store).create_topic("t", assignment={0: [2, 3], 1: [3, 1]}))
    new = run(admin(store).create_partitions("t", 4))
    assert new == {2: (1, 3), 3: (2, 3)}
    grown = run(store.topics.get("t"))
    assert grown is not None
    assert grown.assignment == {0: (2, 3), 1: (3, 1), **new}
    assert not grown.topic_id.is_zero


def test_growing_by_hand_and_only_validating() -> None:
    store = admins.store()
    run(admin(store).create_topic("t", assignment={0: [2]}))
    assert run(admin(store).create_partitions("t", 3, [[1], [3]])) == {1: (1,), 2: (3,)}
    assert run(admin(store).create_partitions("t", 4, validate_only=True)) == {3: (2,)}
    grown = run(store.topics.get("t"))
    assert grown is not None
    assert len(grown.assignment) == 3


@pytest.mark.parametrize(
    ("name", "count", "assignments", "code", "message"),
    [
        (
            "x",
            2,
            None,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "The topic 'x' does not exist.",
        ),
        (
            "dying",
            3,
            None,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "The topic is queued for deletion.",
        ),
        (
            "moving",
            3,
            None,
            ErrorCode.REASSIGNMENT_IN_PROGRESS,
            "A partition reassignment is in progress for the topic 'moving'.",
        ),
        (
            "t",
            1,
            None,
            ErrorCode.INVALID_PARTITIONS,
            "Topic currently has 2 partitions, which is higher than the requested 1.",
        ),
        ("t", 2, None, ErrorCode.INVALID_PARTITIONS, "Topic already has 2 partitions."),
        (
            "t",
            3,
            [[1, 9, 8]],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Unknown broker(s) in replica assignment: 8, 9.",
        ),
        (
            "t",
            4,
            [[1, 2]],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Increasing the number of partitions by 2 but 1 assignments provided.",
        ),
        (
            "t",
            3,
            [[]],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Cannot have replication factor of 0 for partition id 2.",
        ),
        (
            "t",
            3,
            [[1, 1]],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Duplicate brokers not allowed in replica assignment: 1, 1 for partition id 2.",
        ),
        (
            "t",
            4,
            [[1, 2], [3]],
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Inconsistent replication factor between partitions, partition 0 has 2 while partitions"
            " [3] have replication factors [1], respectively.",
        ),
    ],
)
def test_growth_refused(
    name: str,
    count: int,
    assignments: list[list[int]] | None,
    code: ErrorCode,
    message: str,
) -> None:
    store = admins.store()
    pair = {0: (1, 2), 1: (2, 3)}
    run(store.topics.create(TopicDescription("t", topic_id(1), pair)))
    run(store.topics.create(TopicDescription("dying", topic_id(2), pair)))
    run(store.topics.create(TopicDescription("moving", topic_id(3), pair, {0: (3,)})))
    run(store.requests.request_topic_deletion("dying"))
    assert refused(admin(store).create_partitions(name, count, assignments)) == (code, message)
    topic = run(store.topics.get("t"))
    assert topic is not None
    assert topic.assignment == pair


class Racing(TopicStore):
    """Topics that somebody else changes once, between being read and being written."""

    def __init__(self, store: ZkStore, change: Callable[[], None]) -> None:
        super().__init__(store.zookeeper)
        self.change: Callable[[], None] | None = change

    async def update(
        self, topic: TopicDescription, expected: TopicDescription | None = None
    ) -> None:
        if self.change is not None:
            change, self.change = self.change, None
            change()
        await super().update(topic, expected)


def test_a_reassignment_that_begins_meanwhile_is_not_overwritten() -> None:
    store = admins.store()
    topic = TopicDescription("t", topic_id(1), {0: (1,)})
    run(store.topics.create(topic))
    moving = replace(topic, assignment={0: (2, 1)}, adding_replicas={0: (2,)})
    plain = store.topics
    store.topics = Racing(store, lambda: run(plain.update(moving)))
    code, _ = refused(admin(store).create_partitions("t", 2))
    assert code is ErrorCode.REASSIGNMENT_IN_PROGRESS
    assert run(plain.get("t")) == moving


@pytest.mark.parametrize("theirs", [{}, {"retention.ms": "-1"}])
def test_the_configs_of_a_topic_that_another_broker_creates_meanwhile_stay(
    theirs: dict[str, str],
) -> None:
    store = admins.store()
    exists = store.topics.exists

    async def overtaken(topic: str) -> bool:
        found = await exists(topic)
        store.topics.exists = exists  # type: ignore[method-assign]
        other = TopicAdmin(store, admins.metadata(), SeededRandom(), TWO_OF_EACH)
        await other.create_topic(topic, configs=theirs)
        return found

    store.topics.exists = overtaken  # type: ignore[method-assign]
    code, _ = refused(admin(store).create_topic("t", configs={"retention.ms": "1"}))
    assert code is ErrorCode.TOPIC_ALREADY_EXISTS
    assert run(store.configs.get("topics", "t")) == theirs


@pytest.mark.parametrize("lost", ["/brokers/topics/t", "/config/topics/t"])
def test_a_topic_whose_creation_was_answered_to_nobody_is_created(lost: str) -> None:
    """After a lost connection the session sends the write again, and it is refused."""
    zk = AnswerLosingZooKeeper(server())
    store = ZkStore(zk)
    run(store.create_persistent_paths())
    run(store.election.elect(1, 0))
    zk.lost_path = lost
    made = run(admin(store).create_topic("t", configs={"retention.ms": "1"}))
    assert run(store.topics.get("t")) == TopicDescription("t", made.topic_id, made.assignment)
    assert run(store.configs.get("topics", "t")) == {"retention.ms": "1"}


def test_partitions_whose_creation_was_answered_to_nobody_are_created() -> None:
    zk = AnswerLosingZooKeeper(server())
    store = ZkStore(zk)
    run(store.create_persistent_paths())
    run(store.brokers.register(admins.broker(1), 0))
    run(store.topics.create(TopicDescription("t", topic_id(1), {0: (1,)})))
    zk.lost_path = "/brokers/topics/t"
    assert run(admin(store).create_partitions("t", 3)) == {1: (1,), 2: (1,)}
    stored = run(store.topics.get("t"))
    assert stored is not None
    assert stored.assignment == {0: (1,), 1: (1,), 2: (1,)}


def test_no_request_makes_more_partitions_than_can_be_placed() -> None:
    """2^31-1 of them would take the event loop and the memory for good."""
    store = admins.store()
    excessive = (
        ErrorCode.POLICY_VIOLATION,
        "Excessively large number of partitions per request.",
    )
    for count in (10_001, 2**31 - 1):
        assert refused(admin(store).create_topic("t", count, 1)) == excessive
    run(admin(store).create_topic("t", 2, 1))
    assert refused(admin(store).create_partitions("t", 2**31 - 1)) == excessive
    given = dict.fromkeys(range(10_001), (1,))
    assert refused(admin(store).create_topic("u", assignment=given)) == excessive


def test_partitions_that_somebody_else_adds_meanwhile_count() -> None:
    store = admins.store()
    topic = TopicDescription("t", topic_id(1), {0: (1,)})
    run(store.topics.create(topic))
    plain = store.topics
    grown = replace(topic, assignment={0: (1,), 1: (3,)})
    store.topics = Racing(store, lambda: run(plain.update(grown)))
    assert list(run(admin(store).create_partitions("t", 3))) == [2]
    stored = run(plain.get("t"))
    assert stored is not None
    assert stored.assignment[1] == (3,)


@pytest.mark.parametrize("name", ["t/partitions", "t/partitions/0", "../ids", "..", "", "a b"])
def test_a_name_that_no_topic_can_have_leads_to_no_znode(name: str) -> None:
    store = admins.store()
    run(admin(store).create_topic("t"))
    for path in ("/brokers/topics/t/partitions", "/brokers/topics/t/partitions/0"):
        run(store.zookeeper.create(path, b'{"partitions":{"0":[1]}}'))
    before = run(store.zookeeper.children("/admin/delete_topics"))
    for work in (admin(store).delete_topic(name), admin(store).create_partitions(name, 5)):
        with pytest.raises(ApiError) as refused:
            run(work)
        assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert run(store.zookeeper.children("/admin/delete_topics")) == before
