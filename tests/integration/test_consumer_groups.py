"""Groups of the consumer protocol with real clients: members and a coordinator are killed, and
everything is consumed once it is committed; tools show such groups, and Apache Kafka reads them.

Without Apache Kafka's jars only librdkafka is a member, and the end of the run says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafkapy.admin.group_offsets import committed_offsets
from kafkapy.admin.groups import describe_group
from kafkapy.admin.transactions import describe_transaction
from kafkapy.client.cluster import Cluster
from kafkapy.client.coordinators import TRANSACTION_KEY_TYPE, find_coordinator
from kafkapy.client.offsets import LATEST_TIMESTAMP
from kafkapy.client.transaction import Transaction
from kafkapy.common.errors import ApiError
from kafkapy.common.topic_partition import (
    GROUP_METADATA_TOPIC,
    TRANSACTION_STATE_TOPIC,
    TopicPartition,
)
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.end_txn import EndTxnRequest
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_group import BrokerGroup
from tests.harness.processes.group_process import (
    MemberProcess,
    consumed,
    consumed_after_commit,
    java_command,
    librdkafka_command,
)
from tests.harness.processes.waiting import wait_until
from tests.harness.scripted.cli import kafkapy

PARTITIONS = 6
BATCH = 120
LIMIT_S = 90.0
SETTINGS = {
    "zookeeper.session.timeout.ms": "6000",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "1",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
}
Command = Callable[[str, str, str, str], list[str]]
COMMANDS: dict[str, Command] = {"librdkafka": librdkafka_command}
if apache_kafka.installed(apache_kafka.KAFKA_4):
    COMMANDS["java"] = java_command


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerGroup]:
    with BrokerGroup(tmp_path_factory.mktemp("brokers"), (1, 2, 3), SETTINGS) as group:
        yield group


class Story:
    """A topic of its own, a group, and its members."""

    def __init__(self, brokers: BrokerGroup, directory: Path, name: str) -> None:
        self.brokers = brokers
        self.topic = self.group = name
        self.members: list[MemberProcess] = []
        self.sent = 0
        self._directory = directory
        self._undo = ExitStack()
        create(brokers, name, len(brokers.brokers))

    def join(self, command: Command, protocol: str = "consumer") -> MemberProcess:
        member = MemberProcess(
            command(self.brokers.bootstrap_servers, self.topic, self.group, protocol),
            self._directory / f"{self.group}-{len(self.members)}.out",
        )
        self._undo.callback(member.kill)
        self.members.append(member)
        return member

    def produce(self) -> None:
        produce(self.brokers, self.topic, self.sent)
        self.sent += BATCH

    def all_is_consumed(self) -> None:
        self.becomes(lambda: len(consumed(self.members)) == self.sent, f"{self.sent} records")

    def coordinator_is_killed(self) -> None:
        """Records are consumed without it; then it is back."""
        with Cluster(self.brokers.bootstrap_servers) as cluster:
            coordinator = find_coordinator(cluster, self.group)
        self.brokers.brokers[coordinator].kill()
        self.produce()
        self.all_is_consumed()
        self.brokers.start(coordinator)

    def is_described(self, *expected: str | int) -> None:
        """Wait until the group is described like this."""
        wait_until(lambda: self.description() == expected, f"the group is {expected}")

    def description(self) -> tuple[str, str, int]:
        """The type of the group, its state, and how many members it has."""
        with Cluster(self.brokers.bootstrap_servers) as cluster:
            group = describe_group(cluster, self.group)
        return group.type, group.state, len(group.members)

    def are_assigned(self, *members: MemberProcess) -> None:
        def share() -> bool:
            each = [member.assigned() for member in members]
            sizes = {len(partitions) for partitions in each}
            return sizes == {PARTITIONS // len(members)} and len(set().union(*each)) == PARTITIONS

        self.becomes(share, f"{len(members)} members share the partitions")

    def becomes(self, holds: Callable[[], bool], what: str) -> None:
        try:
            wait_until(holds, f"{self.group}: {what}", LIMIT_S)
        except AssertionError as error:
            told = "\n".join(member.complaint() for member in self.members)
            raise AssertionError(f"{error}\n{told}") from None

    def __enter__(self) -> Story:
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()


def create(brokers: BrokerGroup, topic: str, replicas: int) -> None:
    admin = AdminClient({"bootstrap.servers": brokers.bootstrap_servers})
    admin.create_topics([NewTopic(topic, PARTITIONS, replicas)])[topic].result(LIMIT_S)


def produce(brokers: BrokerGroup, topic: str, first: int = 0) -> None:
    # Without idempotence, a killed leader's records are sent twice, and counted for others.
    producer = Producer(
        {"bootstrap.servers": brokers.bootstrap_servers, "enable.idempotence": True}
    )
    for number in range(BATCH):
        producer.produce(topic, str(first + number), partition=number % PARTITIONS)
    assert producer.flush(LIMIT_S) == 0


def consume(brokers: BrokerGroup, group: str, *topics: str, records: int = BATCH) -> set[str]:
    """The topics whose records one member consumed and committed."""
    consumer = Consumer(
        {
            "bootstrap.servers": brokers.bootstrap_servers,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([*topics])
    found: list[str] = []

    def is_done() -> bool:
        for message in consumer.consume(records, 0.1):
            assert message.error() is None, message.error()
            found.append(message.topic() or "")
        return len(found) >= records

    wait_until(is_done, f"{records} records of {topics}", LIMIT_S)
    consumer.commit(asynchronous=False)
    consumer.close()
    return {*found}


def ends(cluster: Cluster, topic: str) -> dict[TopicPartition, int]:
    wanted = {TopicPartition(topic, n): LATEST_TIMESTAMP for n in range(PARTITIONS)}
    return {tp: found.offset for tp, found in cluster.list_offsets(wanted).items()}


def offsets(cluster: Cluster, group: str) -> dict[TopicPartition, int]:
    return {tp: each.offset for tp, each in committed_offsets(cluster, group).items()}


@pytest.mark.parametrize("client", COMMANDS)
def test_members_and_a_coordinator_are_killed(
    brokers: BrokerGroup, tmp_path: Path, client: str
) -> None:
    command = COMMANDS[client]
    with Story(brokers, tmp_path, f"killed-{client}") as story:
        first, second = story.join(command), story.join(command)
        story.are_assigned(first, second)
        story.produce()
        story.all_is_consumed()
        third = story.join(command)
        story.produce()
        story.are_assigned(first, second, third)
        second.kill()
        story.produce()
        story.are_assigned(first, third)
        story.all_is_consumed()
        story.coordinator_is_killed()
        assert first.running
        assert third.running
        first.stop()
        third.stop()
        assert consumed_after_commit(story.members) == []
        with Cluster(brokers.bootstrap_servers) as cluster:
            assert offsets(cluster, story.group) == ends(cluster, story.topic)
        assert story.description() == ("Consumer", "Empty", 0)


def test_members_change_their_protocol_one_by_one_and_back(
    brokers: BrokerGroup, tmp_path: Path
) -> None:
    """With both clients, if there are both; the coordinator is killed while the group has both
    protocols."""
    commands = [librdkafka_command, [*COMMANDS.values()][-1], librdkafka_command]
    with Story(brokers, tmp_path, "rolled") as story:
        members = [story.join(command, "classic") for command in commands]
        story.are_assigned(*members)
        for protocol, kind in (("consumer", "Consumer"), ("classic", "Classic")):
            for number, command in enumerate(commands):
                members[number].stop()
                story.produce()
                members[number] = story.join(command, protocol)
                story.are_assigned(*members)
                if (protocol, number) == ("consumer", 0):
                    story.coordinator_is_killed()
            story.all_is_consumed()
            story.is_described(kind, "Stable", 3)  # a member's next heartbeat may be due
        for member in members:
            member.stop()
        assert consumed_after_commit(story.members) == []
        with Cluster(brokers.bootstrap_servers) as cluster:
            assert offsets(cluster, story.group) == ends(cluster, story.topic)


def test_a_regular_expression_is_matched_by_the_coordinator(brokers: BrokerGroup) -> None:
    for topic in ("re-one", "re-two", "other"):
        create(brokers, topic, 1)
        produce(brokers, topic)
    assert consume(brokers, "matchers", "^re-.*", records=2 * BATCH) == {"re-one", "re-two"}


def test_tools_show_reset_and_delete_the_group(brokers: BrokerGroup, tmp_path: Path) -> None:
    where = ("--bootstrap-server", brokers.bootstrap_servers)

    def tool(*words: str) -> str:
        outcome = kafkapy("consumer-groups", *where, *words)
        assert outcome.status == 0, outcome.stderr
        return outcome.stdout

    def lines(*words: str) -> list[list[str]]:
        return [re.split(" +", line.strip()) for line in tool(*words).splitlines() if line]

    with Story(brokers, tmp_path, "shown") as story:
        one = ("--group", story.group)
        member = story.join(librdkafka_command)
        story.produce()
        story.all_is_consumed()
        assert [story.group, "Consumer", "Stable"] in lines("--list", "--type", "--state")
        assert story.group in tool("--list", "--type", "consumer")
        assert story.group not in tool("--list", "--type", "classic")
        header, row = lines("--describe", "--members", "--verbose", *one)
        assert header[-4:] == [
            *("CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"),
        ]
        assert row[-4:] == ["1", "shown:0,1,2,3,4,5"] * 2
        header, row = lines("--describe", "--state", "--verbose", *one)
        assert header[-4:] == ["STATE", "GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH", "#MEMBERS"]
        assert row[-5:] == ["uniform", "Stable", "1", "1", "1"]
        rows = lines("--describe", *one)[1:]
        assert [cells[1:6] for cells in rows] == [
            ["shown", str(n), "20", "20", "0"] for n in range(PARTITIONS)
        ]
        reset = ("--reset-offsets", "--topic", "shown", "--to-offset", "5", "--execute", *one)
        assert "Assignments can only be reset if the group" in tool(*reset)
        assert "could not be deleted" in tool("--delete", *one)
        member.stop()
        assert ["shown", "shown", "3", "5"] in lines(*reset)
        assert "was successful" in tool("--delete", *one)
        assert story.group not in tool("--list")


if apache_kafka.installed(apache_kafka.KAFKA_4):

    def test_apache_kafka_4_decodes_the_records(brokers: BrokerGroup) -> None:
        create(brokers, "decoded", 1)
        produce(brokers, "decoded")
        consume(brokers, "decoders", "decoded")
        consume(brokers, "matchers", "^decoded$")
        log = brokers.brokers[1].log_dir / f"{GROUP_METADATA_TOPIC}-0" / f"{0:020}.log"
        dumped = apache_kafka.run_tool(
            "org.apache.kafka.tools.DumpLogSegments",
            *("--offsets-decoder", "--files", str(log)),
            release=apache_kafka.KAFKA_4,
        )
        text = dumped.stdout.decode()
        assert dumped.returncode == 0, dumped.stderr.decode()
        for kind, field in (
            (3, "epoch"),
            (4, "topics"),
            (5, "subscribedTopicNames"),
            (6, "assignmentEpoch"),
            (7, "topicPartitions"),
            (8, "assignedPartitions"),
            (16, "topics"),
        ):
            value = rf'"type":"{kind}","data":.* payload: {{"version":"0","data":{{.*"{field}":'
            assert re.search(value, text), (kind, text)
        assert '"subscribedTopicRegex":"(^decoded$)"' in text


if apache_kafka.installed():

    def test_apache_kafka_3_9_takes_the_coordinator_over(tmp_path: Path) -> None:
        """It holds no such groups: they are not offered beside it, and their offsets stay. It goes
        on with what version 2 left of a transactional id.
        """
        settings = {
            **SETTINGS,
            "offsets.topic.replication.factor": "2",
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": "2",
            "transaction.state.log.min.isr": "1",
        }
        with BrokerGroup(tmp_path, (1, 2), settings) as brokers:
            create(brokers, "t", 2)
            produce(brokers, "t")
            consume(brokers, "readers", "t")
            with Cluster(brokers.bootstrap_servers) as cluster:
                expected = offsets(cluster, "readers")
                assert expected == ends(cluster, "t")
                bumped = commit_with_version_2(cluster, TopicPartition("t", 0))
            ours = brokers.brokers[2]
            assert ours.stop() == 0
            theirs = apache_kafka.ApacheBroker(ours.log_dir, ours.properties, brokers.zookeeper)
            theirs.port, theirs.bootstrap_servers = ours.port, ours.bootstrap_servers
            with theirs:
                wait_until(lambda: not offers(brokers, 1), "no consumer groups", LIMIT_S)
                wait_until(lambda: is_in_sync(theirs.bootstrap_servers), "in sync", LIMIT_S)
                assert brokers.brokers[1].stop() == 0
                with Cluster(theirs.bootstrap_servers) as cluster:
                    wait_until(lambda: coordinates(cluster, 2), "coordinator 2", LIMIT_S)
                    assert offsets(cluster, "readers") == expected
                    found = describe_transaction(cluster, "two")
                    assert (found.state, found.producer_epoch) == ("CompleteCommit", bumped)
                    transaction = Transaction(cluster, "two", 10_000)
                    assert transaction.identity == (found.producer_id, bumped + 1)
                    transaction.add([TopicPartition("t", 0)])
                    transaction.end(committed=False)
                brokers.brokers[1].start()
            ours.start()
            wait_until(lambda: offers(brokers, 1), "consumer groups", LIMIT_S)
            produce(brokers, "t")
            consume(brokers, "readers", "t")
            with Cluster(brokers.bootstrap_servers) as cluster:
                assert offsets(cluster, "readers") == ends(cluster, "t")
                commit_with_version_2(cluster, TopicPartition("t", 0))


def commit_with_version_2(cluster: Cluster, partition: TopicPartition) -> int:
    """Commit a transaction of the id `two`. Returns the next producer epoch."""
    transaction = Transaction(cluster, "two", 10_000)
    transaction.add([partition])
    request = EndTxnRequest(
        transactional_id="two",
        producer_id=transaction.identity.producer_id,
        producer_epoch=transaction.identity.producer_epoch,
        committed=True,
    )
    coordinator = find_coordinator(cluster, "two", TRANSACTION_KEY_TYPE)
    response = cluster.request(request, broker_id=coordinator, min_version=5)
    assert response.error_code == 0
    assert response.producer_epoch == transaction.identity.producer_epoch + 1
    wait_until(
        lambda: describe_transaction(cluster, "two").state == "CompleteCommit", "complete", LIMIT_S
    )
    return int(response.producer_epoch)


def coordinates(cluster: Cluster, broker_id: int) -> bool:
    try:
        return find_coordinator(cluster, "readers") == broker_id
    except ApiError:  # there is none for a moment
        return False


def offers(brokers: BrokerGroup, broker_id: int) -> bool:
    with Cluster(brokers.brokers[broker_id].bootstrap_servers) as cluster:
        cluster.metadata([], refresh=True)
        return ApiKey.CONSUMER_GROUP_HEARTBEAT in cluster.channel(broker_id).api_versions


def is_in_sync(bootstrap_servers: str) -> bool:
    """Whether broker 2 is in every ISR. Before it is told of a topic it describes no partition."""
    names = ["t", GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC]
    with Cluster(bootstrap_servers) as cluster:
        topics = cluster.metadata(names, refresh=True).topics
        found = [topics[name].partitions.values() for name in names]
        return all(found) and all(2 in p.isr for partitions in found for p in partitions)
