"""Brokers that ask what each user may do: real clients, `kafkapy acls`, and Apache Kafka's answers
to the same questions.

What a user would lose: somebody reads, writes or changes what the entries forbid, or is refused
what they allow.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.processes.schema_registry import SchemaRegistry
from tests.harness.processes.waiting import LIMIT_S, wait_until
from tests.harness.scripted.cli import kafkapy
from tests.harness.security.guarded_broker import (
    USERS,
    acls,
    apache,
    cluster_of,
    librdkafka,
    login,
    login_file,
    matrix,
    ours,
    prepare,
)

TOPIC_REFUSED = KafkaError.TOPIC_AUTHORIZATION_FAILED
GROUP_REFUSED = KafkaError.GROUP_AUTHORIZATION_FAILED


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    directory = tmp_path_factory.mktemp("guarded")
    broker = ours(directory / "logs")
    with broker:
        prepare(broker, directory)
        yield broker
    assert "Traceback" not in broker.output_text()


def produced(broker: BrokerProcess, user: str, topic: str) -> int:
    """The error code that one record's delivery had."""
    codes: list[int] = []
    producer = Producer({**librdkafka(broker, user), "message.timeout.ms": 15_000})
    producer.produce(
        topic, b"v", on_delivery=lambda error, _: codes.append(error.code() if error else 0)
    )
    producer.flush(LIMIT_S)
    return codes[0]


def consumed(broker: BrokerProcess, user: str, topic: str, group: str) -> bytes | int:
    """The first record of a topic, or the error code that a consumer got instead."""
    consumer = Consumer(
        {**librdkafka(broker, user), "group.id": group, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    found: list[bytes | int] = []

    def is_answered() -> bool:
        message = consumer.poll(0.5)
        if message is not None:
            error = message.error()
            found.append(error.code() if error else message.value())
        return bool(found)

    wait_until(is_answered, f"{user} is answered about {topic}")
    consumer.close()
    return found[0]


def test_clients_do_what_the_entries_allow_and_no_more(guarded: BrokerProcess) -> None:
    for topic in ("open", "pre-a", "pre-secret", "hidden"):
        assert produced(guarded, "admin", topic) == 0
    assert produced(guarded, "alice", "open") == 0
    assert produced(guarded, "alice", "pre-a") == TOPIC_REFUSED
    assert produced(guarded, "bob", "open") == TOPIC_REFUSED  # he may describe it
    assert consumed(guarded, "alice", "pre-a", "team-1") == b"v"
    assert consumed(guarded, "alice", "pre-secret", "team-2") == TOPIC_REFUSED
    assert consumed(guarded, "alice", "open", "strangers") == GROUP_REFUSED
    assert consumed(guarded, "admin", "hidden", "strangers") == b"v"


@pytest.mark.parametrize(
    "words",
    [
        "console-producer --topic open {at}",
        "console-producer --topic open --sync {at}",
        "producer-perf --topic open --num-records 3 --record-size 1 --throughput -1 {perf}",
        "agent --topic open --state {dir}/state --once {dir}/lines {at}",
        "e2e-latency {server} open 3 all 1 {dir}/bob.properties",
    ],
)
def test_a_producer_that_may_not_write_names_the_missing_permission(
    guarded: BrokerProcess, tmp_path: Path, words: str
) -> None:
    """The idempotent producer gets no id. A user was told of a bug in kafkapy."""
    (tmp_path / "lines").write_text("a\nb\n")
    server, config = guarded.bootstrap_servers, login_file(tmp_path, "bob")
    option = "--command-config" if words.startswith("agent") else "--producer.config"
    places = {
        "dir": tmp_path,
        "server": server,
        "at": f"--bootstrap-server {server} {option} {config}",
        "perf": f"--producer.config {config} --producer-props bootstrap.servers={server}",
    }
    # Not in this process: confluent-kafka never frees the exception.
    command = [sys.executable, "-m", "kafkapy", *words.format(**places).split()]
    refused = subprocess.run(command, input="a\nb\n", capture_output=True, text=True)
    assert refused.returncode == 1
    *_, last, hint = refused.stderr.splitlines()
    assert re.search(r"(Cluster|Topic) authorization failed$", last)
    assert hint.startswith("Hint: ask an administrator for the right")


_FIVE_PRODUCERS = """
import json, sys
from kafkapy.common.errors import ApiError
from kafkapy.tools.librdkafka_client import Reporter, ToolProducer, make_client

def delivered(error, message):
    try:
        error.str()  # fails while an exception is pending, which is then its cause
    except Exception:
        pass

config = {"enable.idempotence": True, "linger.ms": 20, **json.loads(sys.argv[1])}
for _ in range(5):
    producer = make_client(ToolProducer, config, Reporter(print, {}))
    producer.produce("open", b"v", on_delivery=delivered)
    try:
        producer.flush()
    except ApiError as error:
        print(error.code.name)
"""


def test_a_callback_does_not_lose_the_reason_of_a_fatal_error(guarded: BrokerProcess) -> None:
    """It ran while confluent-kafka's exception was pending. The user got a SystemError."""
    config = json.dumps(librdkafka(guarded, "bob"))
    ended = subprocess.run(
        [sys.executable, "-c", _FIVE_PRODUCERS, config], capture_output=True, text=True
    )
    assert (ended.stdout, ended.stderr) == ("CLUSTER_AUTHORIZATION_FAILED\n" * 5, "")


def test_entries_are_in_force_at_once_and_gone_at_once(
    guarded: BrokerProcess, tmp_path: Path
) -> None:
    may = "--allow-principal User:bob --producer --topic hidden --force"
    assert produced(guarded, "bob", "hidden") == TOPIC_REFUSED
    assert acls(guarded, tmp_path, f"--add {may}").status == 0
    assert produced(guarded, "bob", "hidden") == 0
    listed = acls(guarded, tmp_path, "--list --topic hidden").stdout
    assert "(principal=User:bob, host=*, operation=WRITE, permissionType=ALLOW)" in listed
    assert acls(guarded, tmp_path, f"--remove {may}").status == 0
    assert produced(guarded, "bob", "hidden") == TOPIC_REFUSED
    assert "operation=WRITE" not in acls(guarded, tmp_path, "--list --topic hidden").stdout


def test_only_who_may_alter_the_cluster_changes_entries(
    guarded: BrokerProcess, tmp_path: Path
) -> None:
    words = "--add --allow-principal User:bob --operation All --topic open"
    refused = acls(guarded, tmp_path, words, "bob")
    assert refused.status == 1
    assert "User:bob is not authorized: ALTER on kafka-cluster is needed" in refused.stderr
    assert acls(guarded, tmp_path, "--list", "bob").status == 1


def test_entries_outlive_the_broker(tmp_path: Path) -> None:
    broker = ours(tmp_path / "logs")
    with broker:
        prepare(broker, tmp_path)
        before = acls(broker, tmp_path, "--list").stdout
        assert "prefixed" in before.lower()
    with broker:
        assert acls(broker, tmp_path, "--list").stdout == before
        assert produced(broker, "alice", "open") == 0
        assert produced(broker, "alice", "hidden") == TOPIC_REFUSED


def test_the_matrix_is_that_of_apache_kafka(tmp_path: Path) -> None:
    try:
        apache_kafka.jars()
    except apache_kafka.Unavailable as reason:
        print(f"not compared with Apache Kafka: {reason}")
        return
    answers = {}
    with apache_kafka.ZooKeeperProcess(tmp_path / "zookeeper") as zookeeper:
        theirs = apache(tmp_path / "theirs", zookeeper)
        with theirs:
            prepare(theirs, tmp_path)
            answers["theirs"] = {user: matrix(theirs, user) for user in USERS}
            listed = acls(theirs, tmp_path, "--list").stdout
        # Our broker goes on with the znodes that Apache Kafka's wrote.
        heir = ours(tmp_path / "heir", zookeeper.bootstrap_servers)
        with heir:
            assert acls(heir, tmp_path, "--list").stdout == listed
    mine = ours(tmp_path / "ours")
    with mine:
        prepare(mine, tmp_path)
        answers["ours"] = {user: matrix(mine, user) for user in USERS}
        assert acls(mine, tmp_path, "--list").stdout == listed
    differences = [
        (user, name, whose, row)
        for user in USERS
        for name, expected in answers["theirs"][user].items()
        for whose, rows, others in (
            ("ours", answers["ours"][user][name], expected),
            ("theirs", expected, answers["ours"][user][name]),
        )
        for row in rows
        if row not in others
    ]
    assert not differences, "\n".join(map(str, differences))


def test_kafkas_own_tool_changes_our_entries(guarded: BrokerProcess, tmp_path: Path) -> None:
    try:
        apache_kafka.jars()
    except apache_kafka.Unavailable as reason:
        print(f"not asked by Apache Kafka's tool: {reason}")
        return
    config = apache_kafka.write_properties(tmp_path / "admin.properties", login("admin"))
    words = ("--bootstrap-server", guarded.bootstrap_servers, "--command-config", str(config))
    entry = ("--allow-principal", "User:carol", "--operation", "Read", "--topic", "carols")

    def tool(*more: str) -> str:
        done = apache_kafka.run_tool("kafka.admin.AclCommand", *words, *more)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    tool("--add", *entry)
    assert "principal=User:carol" in acls(guarded, tmp_path, "--list --topic carols").stdout
    assert "(principal=User:carol, host=*, operation=READ, permissionType=ALLOW)" in tool("--list")
    tool("--remove", "--force", *entry)
    assert "principal=User:carol" not in acls(guarded, tmp_path, "--list").stdout


def test_every_broker_of_a_cluster_hears_of_an_entry(tmp_path: Path) -> None:
    try:
        apache_kafka.jars()
    except apache_kafka.Unavailable as reason:
        print(f"no cluster without ZooKeeper: {reason}")
        return
    with apache_kafka.ZooKeeperProcess(tmp_path / "zookeeper") as zookeeper:
        brokers = [
            ours(tmp_path / f"broker-{index}", zookeeper.bootstrap_servers, index)
            for index in (0, 1)
        ]
        with brokers[0] as first, brokers[1] as second:
            for broker in brokers:
                wait_until(partial(knows, broker, 2), "both brokers are known")
            # With acks=all: the follower may fetch, for it logs in as a super user.
            create(first, "both", replicas=2)
            assert produced(first, "admin", "both") == 0
            words = "--allow-principal User:bob --operation Describe --topic both"
            for action, seen in (("--add", True), ("--remove --force", False)):
                assert acls(first, tmp_path, f"{action} {words}").status == 0
                for broker in (first, second):
                    wait_until(
                        partial(sees, broker, "bob", "both", seen),
                        f"{broker.name} follows {action}",
                    )


def knows(broker: BrokerProcess, brokers: int) -> bool:
    """Whether one broker tells of so many."""
    with cluster_of(broker, "admin") as cluster:
        return len(cluster.metadata([], True).brokers) == brokers


def sees(broker: BrokerProcess, user: str, topic: str, seen: bool) -> bool:
    """Whether a user is told of a topic by one broker, or is not."""
    with cluster_of(broker, user) as cluster:
        return (topic in cluster.metadata(None, True).topics) == seen


def create(broker: BrokerProcess, topic: str, replicas: int) -> None:
    """Make a topic of one partition."""
    client = AdminClient(librdkafka(broker, "admin"))
    client.create_topics([NewTopic(topic, 1, replicas)])[topic].result(timeout=LIMIT_S)


def test_a_transaction_needs_its_id_and_its_topics(guarded: BrokerProcess, tmp_path: Path) -> None:
    def transaction(user: str, topic: str) -> int:
        """0, or the error code that ended it."""
        producer = Producer({**librdkafka(guarded, user), "transactional.id": "carols-tx"})
        try:
            producer.init_transactions(LIMIT_S)
            producer.begin_transaction()
            producer.produce(topic, b"v")
            producer.commit_transaction(LIMIT_S)
        except KafkaException as error:
            return int(error.args[0].code())
        return 0

    assert transaction("alice", "open") == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    may = "--allow-principal User:alice --operation Write --transactional-id carols-tx"
    assert acls(guarded, tmp_path, f"--add {may}").status == 0
    assert transaction("alice", "open") == 0
    assert transaction("alice", "hidden") != 0


def test_readers_without_a_group_need_no_rights_on_one(
    guarded: BrokerProcess, tmp_path: Path
) -> None:
    """librdkafka looks for the coordinator of a group, also for assigned partitions."""
    may = "--allow-principal User:alice --operation"
    for words in (
        f"{may} Read --operation Write --operation DescribeConfigs --topic schemas",
        f"{may} Write --transactional-id schemas-writer",
    ):
        assert acls(guarded, tmp_path, f"--add {words}").status == 0
    admin, alice = login_file(tmp_path, "admin"), login_file(tmp_path, "alice")
    at = ("--bootstrap-server", guarded.bootstrap_servers, "--command-config")
    create = ("--create", "--topic", "schemas", "--config", "cleanup.policy=compact")
    assert kafkapy("topics", *at, str(admin), *create).status == 0
    words = ("--command-config", str(alice), "--topic", "schemas")
    for _ in range(2):
        with SchemaRegistry(tmp_path / "out", guarded.bootstrap_servers, *words) as registry:
            body = {"schema": '"string"'}
            assert registry("POST", "/subjects/a/versions", body) == (200, {"id": 1})
    read = ("--topic", "schemas", "--partition", "0", "--offset", "earliest", "--max-messages", "1")
    done = kafkapy("console-consumer", *at, str(alice), *read)
    assert '"subject":"a"' in done.stdout, done.stderr
    words = (guarded.bootstrap_servers, "open", "3", "1", "1", str(alice))
    assert "Avg latency" in kafkapy("e2e-latency", *words).stdout
