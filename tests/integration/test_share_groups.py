"""Share groups with real clients: records are delivered to one member at a time, again when they
are released or their lock ends, and never again once they are accepted; tools show such groups.

Without Apache Kafka's jars only librdkafka is a member, and the end of the run says so.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka import AcknowledgeType, Producer, ShareConsumer
from confluent_kafka.admin import AdminClient, NewTopic

from kafkapy.admin.share_groups import (
    alter_share_offsets,
    describe_share_group,
    share_offsets,
)
from kafkapy.client.cluster import Cluster
from kafkapy.client.coordinators import find_coordinator
from kafkapy.common.topic_partition import SHARE_GROUP_STATE_TOPIC, TopicPartition
from tests.harness.plugins import unchecked
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_group import BrokerGroup
from tests.harness.processes.group_process import MemberProcess
from tests.harness.processes.waiting import wait_until
from tests.harness.scripted.cli import kafkapy

PARTITIONS = 3
BATCH = 60
LIMIT_S = 60.0
LOCK_MS = 4_000
SETTINGS = {
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "group.share.session.timeout.ms": "6000",
    "group.share.min.session.timeout.ms": "6000",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.record.lock.duration.ms": str(LOCK_MS),
    "group.share.min.record.lock.duration.ms": "1000",
    "zookeeper.session.timeout.ms": "6000",
}
JAVA_MEMBER = "org.apache.kafka.tools.VerifiableShareConsumer"
HAS_KAFKA_4 = apache_kafka.installed(apache_kafka.KAFKA_4)

Place = tuple[int, int]
"""Partition and offset."""


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerGroup]:
    with BrokerGroup(tmp_path_factory.mktemp("brokers"), (1, 2, 3), SETTINGS) as group:
        yield group


class Member:
    """A member with librdkafka that acknowledges each record itself."""

    def __init__(self, brokers: BrokerGroup, name: str) -> None:
        self.delivered: Counter[Place] = Counter()
        self.counts: dict[Place, list[int]] = {}
        self._consumer = ShareConsumer(
            {
                "bootstrap.servers": brokers.bootstrap_servers,
                "group.id": name,
                "share.acknowledgement.mode": "explicit",
            }
        )
        self._consumer.subscribe([name])

    def poll(self, kind: AcknowledgeType | None = AcknowledgeType.ACCEPT) -> list[Place]:
        """The places of some records, which are acknowledged unless `kind` is None."""
        places = []
        for message in self._consumer.poll(0.2) or ():
            assert message.error() is None, message.error()
            place = (message.partition(), message.offset())
            places.append(place)
            self.delivered[place] += 1
            self.counts.setdefault(place, []).append(message.delivery_count())
            if kind is not None:
                self._consumer.acknowledge(message, kind)
        if places and kind is not None:
            self._consumer.commit_sync()
        return places

    def close(self) -> None:
        self._consumer.close()

    def __enter__(self) -> Member:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def create(brokers: BrokerGroup, name: str, partitions: int = PARTITIONS) -> None:
    """A topic, and a group of its name that begins at its start."""
    admin = AdminClient({"bootstrap.servers": brokers.bootstrap_servers})
    admin.create_topics([NewTopic(name, partitions, 3)])[name].result(LIMIT_S)
    with Cluster(brokers.bootstrap_servers) as cluster:
        starts = {TopicPartition(name, index): 0 for index in range(partitions)}

        def is_told() -> bool:
            return not any(alter_share_offsets(cluster, name, starts).values())

        wait_until(is_told, f"the coordinator of {name} knows the topic")


def produce(brokers: BrokerGroup, topic: str, partitions: int = PARTITIONS) -> None:
    # Without idempotence, a killed leader's records are sent twice, and counted for others.
    producer = Producer(
        {"bootstrap.servers": brokers.bootstrap_servers, "enable.idempotence": True}
    )
    for number in range(BATCH):
        producer.produce(topic, str(number), partition=number % partitions)
    assert producer.flush(LIMIT_S) == 0


def left(brokers: BrokerGroup, group: str) -> int:
    """The number of records that are still to be delivered."""
    with Cluster(brokers.bootstrap_servers) as cluster:
        return sum(each.lag or 0 for each in share_offsets(cluster, group).values())


def places_of(events: Sequence[dict[str, object]]) -> Counter[Place]:
    """The records that Java's verifiable member was delivered."""
    return Counter(
        (int(str(event["partition"])), int(str(event["offset"])))
        for event in events
        if event["name"] == "record_data"
    )


def java_member(brokers: BrokerGroup, name: str, out: Path) -> MemberProcess | None:
    """A member of the group and topic of a name, if Apache Kafka 4 is here."""
    if not HAS_KAFKA_4:
        unchecked.note("Java's share consumer", "no Apache Kafka 4")
        return None
    flags = ("--topic", name, "--group-id", name, "--verbose")
    servers = ("--bootstrap-server", brokers.bootstrap_servers)
    command = apache_kafka.java_command(JAVA_MEMBER, *servers, *flags, release=apache_kafka.KAFKA_4)
    return MemberProcess(command, out)


def test_members_share_records_and_accepted_ones_are_never_delivered_again(
    brokers: BrokerGroup, tmp_path: Path
) -> None:
    """While members consume, the coordinator of group and states is killed."""
    create(brokers, "shared")
    java = java_member(brokers, "shared", tmp_path / "java.out")

    def of_java() -> Counter[Place]:
        return Counter() if java is None else places_of([e.fields for e in java.events()])

    try:
        with Member(brokers, "shared") as member:

            def delivered() -> Counter[Place]:
                member.poll()
                return member.delivered + of_java()

            def all_is_accepted(total: int) -> None:
                wait_until(lambda: len(delivered()) == total, f"{total} records", LIMIT_S)
                wait_until(lambda: left(brokers, "shared") == 0, "all are accepted", LIMIT_S)

            def all_are_members() -> bool:
                member.poll()
                with Cluster(brokers.bootstrap_servers) as cluster:
                    found = describe_share_group(cluster, "shared").members
                shares = [len(each.assignment) for each in found]
                return len(found) == (1 if java is None else 2) and sum(shares) == PARTITIONS

            wait_until(all_are_members, "all share the partitions", LIMIT_S)
            produced = 0

            def java_has_some() -> bool:
                """Perhaps not at once: the other, which had all partitions, may go on with them
                until its next heartbeat."""
                nonlocal produced
                produce(brokers, "shared")
                produced += BATCH
                all_is_accepted(produced)
                return java is None or bool(of_java())

            wait_until(java_has_some, "both kinds have records", LIMIT_S)
            accepted = set(delivered())
            with Cluster(brokers.bootstrap_servers) as cluster:
                coordinator = find_coordinator(cluster, "shared")
            brokers.brokers[coordinator].kill()
            try:
                produce(brokers, "shared")
                all_is_accepted(produced + BATCH)
            finally:
                brokers.start(coordinator)
            again = {place: n for place, n in delivered().items() if n > 1 and place in accepted}
            assert not again
    finally:
        if java is not None:
            java.stop()


def test_records_are_released_rejected_and_delivered_again(brokers: BrokerGroup) -> None:
    create(brokers, "outcomes", 1)
    produce(brokers, "outcomes", 1)
    with Member(brokers, "outcomes") as first:
        wait_until(lambda: first.poll(AcknowledgeType.RELEASE), "some are released", LIMIT_S)
        released = set(first.delivered)
        wait_until(lambda: first.poll(AcknowledgeType.REJECT), "some are rejected", LIMIT_S)
        rejected = {place for place, counts in first.counts.items() if len(counts) == 2}
        assert rejected, "what was released comes again"
        assert all(first.counts[place] == [1, 2] for place in rejected)
        wait_until(
            lambda: not first.poll() and left(brokers, "outcomes") == 0, "nothing is left", LIMIT_S
        )
        assert len(first.delivered) == BATCH
        assert all(n == 2 for place, n in first.delivered.items() if place in released)


def test_a_lock_ends_when_its_member_is_silent(brokers: BrokerGroup) -> None:
    create(brokers, "silent", 1)
    produce(brokers, "silent", 1)
    first = Member(brokers, "silent")
    wait_until(lambda: first.poll(None), "some are acquired", LIMIT_S)
    with Member(brokers, "silent") as second:
        wait_until(lambda: not second.poll() and len(second.delivered) == BATCH, "all", LIMIT_S)
        assert all(second.counts[place] == [2] for place in first.delivered)
        assert left(brokers, "silent") == 0
    first.close()


def test_a_record_is_delivered_so_many_times(brokers: BrokerGroup) -> None:
    create(brokers, "limit", 1)
    produce(brokers, "limit", 1)
    with Member(brokers, "limit") as member:
        wait_until(
            lambda: not member.poll(AcknowledgeType.RELEASE) and left(brokers, "limit") == 0,
            "all are archived",
            LIMIT_S,
        )
        assert len(member.counts) == BATCH
        assert all(counts == [1, 2, 3, 4, 5] for counts in member.counts.values())


def test_tools_show_share_groups(brokers: BrokerGroup) -> None:
    create(brokers, "shown", 1)
    produce(brokers, "shown", 1)
    servers = ("--bootstrap-server", brokers.bootstrap_servers)

    def data(*words: str) -> list[dict[str, object]]:
        done = kafkapy("share-groups", *servers, *words, "--output", "json")
        assert done.status == 0, done
        found: list[dict[str, object]] = json.loads(done.stdout)["data"]
        return found

    assert {"group": "shown", "state": "Empty"} in data("--list", "--state")
    with Member(brokers, "shown") as member:
        wait_until(lambda: len(member.delivered) == BATCH or not member.poll(), "all", LIMIT_S)
        wait_until(lambda: not member.poll() and left(brokers, "shown") == 0, "all", LIMIT_S)
        [row] = data("--describe", "--group", "shown", "--members")
        assert row["assignment"] == [{"topic": "shown", "partition": 0}]
        used = ("--group", "shown", "--topic", "shown", "--to-latest", "--dry-run")
        refused = kafkapy("share-groups", *servers, "--reset-offsets", *used)
        assert (refused.status, "group 'shown' is not empty." in refused.stderr) == (1, True)
        refused = kafkapy("share-groups", *servers, "--delete", "--group", "shown")
        assert "due to: Share group 'shown' is not EMPTY." in refused.stdout
    [row] = data("--describe", "--group", "shown")
    assert row["lag"] == 0  # as in Kafka, the stored start offset is that before the last change
    reset = ("--reset-offsets", "--group", "shown", "--topic", "shown", "--execute")
    data(*reset, "--to-earliest")
    assert left(brokers, "shown") == BATCH
    console = ("--topic", "shown", "--group", "shown", "--max-messages", "2")
    show = ("--formatter-property", "print.delivery=true")
    done = kafkapy("console-share-consumer", *servers, *console, *show, "--reject")
    assert done.stdout.splitlines() == ["Delivery:1\t0", "Delivery:1\t1"], done.stderr
    member_of = ("--topic", "shown", "--group-id", "shown", "--max-messages", "1")
    done = kafkapy("verifiable-share-consumer", *servers, *member_of)
    *_, acknowledged, end = map(json.loads, done.stdout.splitlines())
    assert (acknowledged["name"], acknowledged["success"]) == ("offsets_acknowledged", True)
    assert end["name"] == "shutdown_complete"
    assert left(brokers, "shown") == BATCH - 2 - acknowledged["count"]
    [row] = data("--delete-offsets", "--group", "shown", "--topic", "shown")
    assert row["topic"] == "shown"
    assert data("--describe", "--group", "shown") == []
    [row] = data("--delete", "--group", "shown")
    assert row["deleted"] is True


def test_a_group_is_deleted_after_its_topic(brokers: BrokerGroup) -> None:
    create(brokers, "gone", 1)
    admin = AdminClient({"bootstrap.servers": brokers.bootstrap_servers})
    admin.delete_topics(["gone"])["gone"].result(LIMIT_S)

    delete = ("--delete", "--group", "gone", "--output", "json")

    def is_deleted() -> bool:
        done = kafkapy("share-groups", "--bootstrap-server", brokers.bootstrap_servers, *delete)
        return bool(json.loads(done.stdout)["data"][0]["deleted"])

    wait_until(is_deleted, "the coordinators know that the topic is no more")


def test_the_dump_shows_the_progress_of_share_groups_as_apache_kafka_4_does(
    brokers: BrokerGroup, tmp_path: Path
) -> None:
    create(brokers, "dumped", 1)
    produce(brokers, "dumped", 1)
    with Member(brokers, "dumped") as member:
        wait_until(lambda: len(member.delivered) == BATCH or not member.poll(), "all", LIMIT_S)
    logs = []
    for partition in brokers.brokers[1].log_dir.glob(f"{SHARE_GROUP_STATE_TOPIC}-*"):
        copied = shutil.copytree(partition, tmp_path / partition.name)  # others still write
        logs.append(str(copied / f"{0:020}.log"))
    flags = ("--share-group-state-decoder", "--files", ",".join(logs))
    shown = payloads(kafkapy("dump-log-segments", *flags).stdout)
    assert any('"type":"0"' in each and '"stateBatches"' in each for each in shown)
    if HAS_KAFKA_4:
        tool = "org.apache.kafka.tools.DumpLogSegments"
        done = apache_kafka.run_tool(tool, *flags, release=apache_kafka.KAFKA_4)
        assert payloads(done.stdout.decode()) == shown, done.stderr.decode()
    else:
        unchecked.note("Apache Kafka's dump of share groups", "no Apache Kafka 4")


def payloads(dumped: str) -> list[str]:
    return re.findall(r"key: .*", dumped)
