"""`--zookeeper`, as runbooks have carried it since 0.8, against ZooKeeper and one broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.processes.broker_group import BrokerGroup
from tests.harness.processes.waiting import wait_until
from tests.harness.scripted.cli import Outcome, kafkapy

WARNING = (
    "Warning: --zookeeper is deprecated and will be removed in a future version of Kafka.\n"
    "Use --bootstrap-server instead to specify a broker to connect to.\n"
)


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerGroup]:
    with BrokerGroup(tmp_path_factory.mktemp("zookeeper-flag"), [1], {}) as group:
        yield group


def run(group: BrokerGroup, name: str, *words: str) -> Outcome:
    return kafkapy(name, *words, "--zookeeper", group.zookeeper.connect())


def test_the_runbook_of_a_topic(group: BrokerGroup) -> None:
    counts = ("--replication-factor", "1", "--partitions", "2")
    made = run(group, "topics", "--create", *counts, "--topic", "topic1")
    assert (made.stdout, made.status) == ("Created topic topic1.\n", 0)
    assert "topic1" in run(group, "topics", "--list").stdout.splitlines()
    assert run(group, "topics", "--describe", "--topic", "topic1").stdout == (
        "Topic: topic1\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: \n"
        "\tTopic: topic1\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\n"
        "\tTopic: topic1\tPartition: 1\tLeader: 1\tReplicas: 1\tIsr: 1\n"
    )
    words = ("--alter", "--topic", "topic1")
    altered = run(group, "topics", *words, "--config", "retention.ms=1000", "--partitions", "3")
    assert "Updated config for topic topic1.\n" in altered.stdout
    assert altered.stdout.endswith("Adding partitions succeeded!\n")
    described = run(group, "topics", "--describe", "--topic", "topic1").stdout
    assert described.startswith(
        "Topic: topic1\tPartitionCount: 3\tReplicationFactor: 1\tConfigs: retention.ms=1000\n"
    )
    fewer = run(group, "topics", *words, "--partitions", "1")
    assert fewer.stderr.endswith("currently has 3 partitions, 1 would not be an increase.\n")
    assert fewer.status == 1
    run(group, "topics", *words, "--delete-config", "retention.ms")
    gone = run(group, "topics", "--delete", "--topic", "topic1")
    assert gone.stdout.startswith("Topic topic1 is marked for deletion.\nNote: This will have no")


def test_configs_by_znodes(group: BrokerGroup) -> None:
    kafkapy("topics", "--create", "--topic", "c", "--bootstrap-server", group.bootstrap_servers)
    topic = ("--entity-type", "topics", "--entity-name", "c")
    done = run(group, "configs", "--alter", *topic, "--add-config", "retention.ms=7")
    assert done.stdout == WARNING + "Completed updating config for entity: topic 'c'.\n"
    shown = run(group, "configs", "--describe", *topic)
    assert shown.stdout == WARNING + "Configs for topic 'c' are retention.ms=7\n"
    wait_until(
        lambda: "retention.ms=7" in group_describes(group, "c"), "the broker has read it", 30
    )
    wrong = run(group, "configs", "--alter", *topic, "--delete-config", "segment.ms")
    assert (wrong.stderr, wrong.status) == ("Invalid config(s): segment.ms\n", 1)
    absent = ("--entity-type", "topics", "--entity-name", "absent")
    done = run(group, "configs", "--alter", *absent, "--add-config", "retention.ms=7")
    assert (done.stderr, done.status) == ("Topic absent does not exist.\n", 1)
    assert run(group, "configs", "--describe", *absent).stdout.endswith("topic 'absent' are \n")


def group_describes(group: BrokerGroup, topic: str) -> str:
    words = ("--bootstrap-server", group.bootstrap_servers, "--topic", topic)
    return kafkapy("topics", "--describe", *words).stdout


def test_quotas_by_znodes(group: BrokerGroup) -> None:
    both = ("--entity-type", "users", "--entity-type", "clients")
    named = (*both, "--entity-name", "u", "--entity-name", "c")
    done = run(group, "configs", "--alter", *named, "--add-config", "producer_byte_rate=1024")
    assert done.stdout.endswith("for entity: user-principal 'u', client-id 'c'.\n")
    shown = run(group, "configs", "--describe", *both).stdout
    assert shown == (
        WARNING + "Configs for user-principal 'u', client-id 'c' are producer_byte_rate=1024\n"
    )
    assert run(group, "configs", "--describe", "--entity-type", "users").stdout == WARNING


def test_a_running_broker_keeps_its_configs(group: BrokerGroup) -> None:
    broker = ("--entity-type", "brokers", "--entity-name", "1")
    done = run(group, "configs", "--alter", *broker, "--add-config", "message.max.bytes=9")
    assert "--bootstrap-server option must be specified to update broker configs" in done.stderr
    assert done.status == 1


def test_a_zookeeper_without_brokers_is_said(group: BrokerGroup) -> None:
    connect = f"{group.zookeeper.connect()}/elsewhere"
    done = kafkapy("topics", "--list", "--zookeeper", connect)
    assert done.status == 1
    assert done.stderr.count("\n") == 1
    assert "elsewhere" in done.stderr


def shell(group: BrokerGroup, *words: str, stdin: bytes = b"") -> Outcome:
    return kafkapy("zookeeper-shell", group.zookeeper.connect(), *words, stdin=stdin)


def test_the_shell_reads_what_brokers_write(group: BrokerGroup) -> None:
    done = shell(group, "ls", "/brokers/ids")
    assert done.stdout == f"Connecting to {group.zookeeper.connect()}\n\n[1]\n"
    assert '"listener_security_protocol_map"' in shell(group, "get", "/brokers/ids/1").stdout
    assert "ephemeralOwner = 0x" in shell(group, "ls", "-s", "/brokers/ids").stdout
    missing = shell(group, "get", "/none")
    assert (missing.stderr, missing.status) == ("Node does not exist: /none\n", 1)


def test_a_prompt_goes_on_after_what_fails(group: BrokerGroup) -> None:
    lines = b"create /mine one\nset -v 7 /mine two\nset /mine two\nget /mine\nrmr /mine\nquit\nx\n"
    done = shell(group, stdin=lines)
    assert done.stdout.endswith("Welcome to ZooKeeper!\ntwo\n")
    assert done.stderr == "Created /mine\nversion No is not valid : /mine\n"
    assert done.status == 0
