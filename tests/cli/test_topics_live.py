"""`kafkapy topics` and `configs` against a running broker."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.scripted import cli

Kafkapy = Callable[..., cli.Outcome]


@pytest.fixture(scope="module")
def kafkapy(broker: BrokerProcess) -> Kafkapy:
    at = ("--bootstrap-server", broker.bootstrap_servers)
    return lambda name, *words: cli.kafkapy(name, *at, *words)


def test_the_life_of_a_topic(kafkapy: Kafkapy) -> None:
    made = kafkapy("topics", "--create", "--topic", "life", "--partitions", "2")
    assert (made.stdout, made.stderr, made.status) == ("Created topic life.\n", "", 0)
    again = kafkapy("topics", "--create", "--topic", "life")
    said = "Error while executing topic command : Topic 'life' already exists.\nHint: "
    assert again.stderr.startswith(said)
    assert again.status == 1
    assert kafkapy("topics", "--create", "--topic", "life", "--if-not-exists").stdout == ""
    assert "life" in kafkapy("topics", "--list").stdout.split("\n")

    kafkapy("topics", "--alter", "--topic", "life", "--partitions", "3")
    header, *rows = kafkapy("topics", "--describe", "--topic", "life").stdout.splitlines()
    fields = header.split("\t")
    assert fields[0] == "Topic: life"
    assert fields[1].startswith("TopicId: ")
    assert fields[2:] == ["PartitionCount: 3", "ReplicationFactor: 1", "Configs: "]
    assert rows == [
        f"\tTopic: life\tPartition: {p}\tLeader: 0\tReplicas: 0\tIsr: 0"
        "\tElr: N/A\tLastKnownElr: N/A"
        for p in range(3)
    ]
    less = kafkapy("topics", "--alter", "--topic", "life", "--partitions", "1")
    assert "Topic currently has 3 partitions, which is higher than the requested 1." in less.stderr

    gone = kafkapy("topics", "--delete", "--topic", "life")
    assert (gone.stdout, gone.status) == ("", 0)
    missing = kafkapy("topics", "--describe", "--topic", "life")
    assert "Topic 'life' does not exist as expected\n" in missing.stderr


def test_configs_of_a_topic(kafkapy: Kafkapy) -> None:
    words = ("--config", "cleanup.policy=compact,delete", "--config", "retention.ms=1000")
    kafkapy("topics", "--create", "--topic", "configured", *words)
    topic = json.loads(
        kafkapy("topics", "--describe", "--topic", "configured", "--output", "json").stdout
    )["data"][0]
    assert topic["configs"] == {"cleanup.policy": "compact,delete", "retention.ms": "1000"}

    entity = ("--entity-type", "topics", "--entity-name", "configured")
    changes = ("--add-config", "segment.bytes=5000000", "--delete-config", "retention.ms")
    changed = kafkapy("configs", "--alter", *entity, *changes)
    assert changed.stdout == "Completed updating config for topic configured.\n"
    title, *rows = kafkapy("configs", "--describe", *entity).stdout.splitlines()
    assert title == "Dynamic configs for topic configured are:"
    assert [row.split("=")[0] for row in rows] == ["  cleanup.policy", "  segment.bytes"]
    assert rows[1].startswith(
        "  segment.bytes=5000000 sensitive=false "
        "synonyms={DYNAMIC_TOPIC_CONFIG:segment.bytes=5000000"
    )
    wrong = kafkapy("configs", "--alter", *entity, "--add-config", "segment.bytes=x")
    assert (wrong.status, wrong.stdout) == (1, "")
    assert "segment.bytes" in wrong.stderr
    absent = kafkapy("configs", "--alter", *entity, "--delete-config", "retention.ms")
    assert absent.stderr == "Invalid config(s): retention.ms\n"


def test_configs_of_brokers(kafkapy: Kafkapy) -> None:
    default = ("--entity-type", "brokers", "--entity-default")
    changed = kafkapy("configs", "--alter", *default, "--add-config", "message.max.bytes=2000000")
    assert changed.stdout == "Completed updating default config for brokers in the cluster.\n"
    shown = kafkapy("configs", "--describe", *default).stdout
    assert shown.startswith(
        "Default configs for brokers in the cluster are:\n  message.max.bytes=2000000 "
    )
    everything = kafkapy("configs", "--describe", "--broker", "0", "--all").stdout.splitlines()
    assert everything[0] == "All configs for broker 0 are:"
    assert len(everything) > 100
    kafkapy("configs", "--alter", *default, "--delete-config", "message.max.bytes")
    assert len(kafkapy("configs", "--describe", *default).stdout.splitlines()) == 1


def test_quotas_are_set_shown_and_removed(kafkapy: Kafkapy) -> None:
    for words, name, key in (
        (("--user", "u"), "user-principal 'u'", "producer_byte_rate"),
        (("--user-defaults",), "the default user-principal", "request_percentage"),
        (("--client", "c"), "client-id 'c'", "consumer_byte_rate"),
        (("--client-defaults",), "the default client-id", "controller_mutation_rate"),
        (
            ("--user", "u", "--client-defaults"),
            "user-principal 'u', the default client-id",
            "consumer_byte_rate",
        ),
        (("--ip", "10.1.2.3"), "ip '10.1.2.3'", "connection_creation_rate"),
        (
            ("--entity-type", "ips", "--entity-default"),
            "the default ip",
            "connection_creation_rate",
        ),
    ):
        done = kafkapy("configs", "--alter", *words, "--add-config", f"{key}=1048576")
        assert (done.status, done.stderr) == (0, ""), words
        shown = kafkapy("configs", "--describe", *words).stdout
        assert shown == f"Quota configs for {name} are {key}=1048576.0\n"
        done = kafkapy("configs", "--alter", *words, "--delete-config", key)
        assert (done.status, done.stderr) == (0, "")
        assert kafkapy("configs", "--describe", *words).stdout == ""
    address = ("--entity-type", "ips", "--entity-name", "nowhere.invalid")
    done = kafkapy("configs", "--alter", *address, "--add-config", "connection_creation_rate=1")
    assert done.status == 1
    assert "nowhere.invalid" in done.stderr


def test_refusals_have_the_brokers_words(kafkapy: Kafkapy) -> None:
    said = {
        ("--topic", "a b"): "Topic name is invalid: 'a b' contains one or more characters other",
        ("--topic", "rf", "--replication-factor", "3"): (
            "Replication factor: 3 larger than available brokers: 1."
        ),
    }
    for words, text in said.items():
        done = kafkapy("topics", "--create", *words)
        assert done.status == 1
        assert f"Error while executing topic command : {text}" in done.stderr


def test_what_the_broker_speaks(kafkapy: Kafkapy, broker: BrokerProcess) -> None:
    lines = kafkapy("broker-api-versions").stdout.splitlines()
    assert lines[0] == f"{broker.bootstrap_servers} (id: 0 rack: null) -> ("
    assert lines[-1] == ")"
    assert "\tMetadata(3): 0 to 13 [usable: 13]," in lines


def test_a_logger_of_a_broker_logs_more_and_again_less(kafkapy: Kafkapy) -> None:
    name = "kafka.server.KafkaApis"
    entity = ("--entity-type", "broker-loggers", "--entity-name", "0")
    for *change, level in (
        ("--add-config", f"{name}=DEBUG", "DEBUG"),
        ("--delete-config", name, "INFO"),
    ):
        altered = kafkapy("configs", "--alter", *entity, *change)
        assert altered.stdout == "Completed updating config for broker-logger 0.\n"
        shown = kafkapy("configs", "--describe", *entity).stdout
        assert f"\n  {name}={level} sensitive=false synonyms={{}}\n" in shown
    refused = kafkapy("configs", "--alter", *entity, "--add-config", f"{name}=LOUD")
    assert f"Cannot set the log level of {name} to LOUD as it is not a supported" in refused.stderr
    assert refused.status == 1
