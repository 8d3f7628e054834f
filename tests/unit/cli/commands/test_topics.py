"""`kafkapy topics`: flags, refusals, requests and text."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.cli.commands.topics import parse_replica_assignment, parse_topic_configs
from kafkapy.common.errors import ConfigError, ErrorCode
from kafkapy.common.topic_configs import TOPIC_CONFIGS
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.create_partitions import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from kafkapy.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from kafkapy.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from kafkapy.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
)
from tests.harness.scripted.cli import Outcome, kafkapy
from tests.harness.scripted.scripted_broker import ScriptedCluster
from tests.harness.scripted.scripted_topics import (
    TOPIC_ID,
    describe_configs,
    describing_cluster,
)

CREATED = CreateTopicsResponse(topics=[CreatableTopicResult(name="n")])
EXISTS = CreateTopicsResponse(
    topics=[
        CreatableTopicResult(
            name="n",
            error_code=ErrorCode.TOPIC_ALREADY_EXISTS,
            error_message="Topic 'n' already exists.",
        )
    ]
)
GROWN = CreatePartitionsResponse(results=[CreatePartitionsTopicResult(name="t")])
DELETED = DeleteTopicsResponse(responses=[DeletableTopicResult(name="t")])


def topics(*words: str, cluster: ScriptedCluster | None = None, **more: Any) -> Outcome:
    chosen = cluster or describing_cluster()
    return kafkapy("topics", "--bootstrap-server", "b:1", *words, cluster=chosen, **more)


# flags


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Command must include exactly one action"),
        (["--list", "--describe"], "Command must include exactly one action"),
        (["--create"], 'Missing required argument "[topic]"'),
        (["--delete"], 'Missing required argument "[topic]"'),
        (["--alter", "--topic", "t"], 'Missing required argument "[partitions]"'),
        (["--describe", "--if-exists"], "--topic or --topic-id is required to describe a topic"),
        (["--list", "--config", "a=b"], 'Option "[config]" can\'t be used with option "[list]"'),
        (
            ["--describe", "--partitions", "1"],
            'Option "[partitions]" can\'t be used with option "[describe]"',
        ),
        (
            ["--alter", "--topic", "t", "--partitions", "2", "--replication-factor", "1"],
            'Option "[replication-factor]" can\'t be used with option "[alter]"',
        ),
        (
            ["--create", "--topic", "n", "--replica-assignment", "1", "--partitions", "1"],
            'Option "[replica-assignment]" can\'t be used with option "[partitions]"',
        ),
        (
            ["--describe", "--topics-with-overrides", "--unavailable-partitions"],
            'can\'t be used with option "[topics-with-overrides]"',
        ),
        (
            ["--alter", "--topic", "t", "--config", "a=b"],
            'Option combination "[[bootstrap-server], [config]]" can\'t be used with option'
            ' "[alter]" (the kafka-configs CLI supports',
        ),
        (
            ["--list", "--delete-config", "a"],
            'Option combination "[[bootstrap-server], [delete-config]]" can\'t be used',
        ),
        (["--list", "--if-exists"], 'Option "[if-exists]" can\'t be used with option "[list]"'),
        (
            ["--delete", "--topic", "t", "--if-not-exists"],
            'Option "[if-not-exists]" can\'t be used with option "[delete]"',
        ),
    ],
)
def test_wrong_usage(words: list[str], said: str) -> None:
    cluster = describing_cluster()
    outcome = topics(*words, cluster=cluster)
    assert said in outcome.stderr
    assert (outcome.stdout, outcome.status, cluster.requests) == ("", 1, [])


def test_a_server_is_needed() -> None:
    outcome = kafkapy("topics", "--list")
    assert outcome.stderr.startswith("--bootstrap-server must be specified\n")


# list


def test_list_is_sorted_and_filtered() -> None:
    assert topics("--list").stdout == "plain\nt\n"
    assert topics("--list", "--topic", "p.*").stdout == "plain\n"
    assert topics("--list", "--topic", "none").stdout == "\n"
    assert topics("--list", "--topic", "t, plain").stdout == "plain\nt\n"


def test_list_as_json_and_table() -> None:
    listed = topics("--list", "--output", "json").data
    assert listed[1] == {
        "topic": "t",
        "topic_id": str(TOPIC_ID),
        "partition_count": 5,
        "internal": False,
    }
    assert listed[0]["topic_id"] is None
    shown = topics("--list", terminal=True).stdout
    assert "Partitions" in shown
    assert "plain" in shown


def test_a_bad_regex_is_said() -> None:
    outcome = topics("--list", "--topic", "a(")
    assert outcome.stderr == "Error while executing topic command : a( is an invalid regex.\n"


# create


def create(*words: str, answer: Any = CREATED) -> tuple[Outcome, list[Any]]:
    cluster = describing_cluster(CREATE_TOPICS=answer)
    outcome = topics("--create", "--topic", *words, cluster=cluster)
    return outcome, cluster.requests_of(ApiKey.CREATE_TOPICS)


def test_create_with_the_clusters_defaults() -> None:
    outcome, (request,) = create("n")
    assert (outcome.stdout, outcome.stderr, outcome.status) == ("Created topic n.\n", "", 0)
    (topic,) = request.topics
    assert (topic.num_partitions, topic.replication_factor) == (-1, -1)


def test_create_with_everything() -> None:
    words = ["--partitions", "3", "--replication-factor=2", "--config", "cleanup.policy=compact"]
    _, (request,) = create("n", *words, "--config", "retention.ms = 5")
    (topic,) = request.topics
    assert (topic.num_partitions, topic.replication_factor) == (3, 2)
    configs = {config.name: config.value for config in topic.configs}
    assert configs == {"cleanup.policy": "compact", "retention.ms": "5"}


def test_create_with_an_assignment() -> None:
    _, (request,) = create("n", "--replica-assignment", "1:2, 2:1")
    (topic,) = request.topics
    placed = {a.partition_index: a.broker_ids for a in topic.assignments}
    assert placed == {0: [1, 2], 1: [2, 1]}
    assert (topic.num_partitions, topic.replication_factor) == (-1, -1)


def test_create_warns_of_colliding_names_on_stdout() -> None:
    outcome, _ = create("a.b")
    assert outcome.stdout.startswith("WARNING: Due to limitations in metric names")
    outcome, _ = create("a.b", "--output", "json")
    assert outcome.data == [{"topic": "a.b", "created": True}]


FORMAT_WARNING = (
    "WARNING: The configuration message.format.version=2.0 is specified. This configuration will be"
    " ignored if the version is newer than the inter.broker.protocol.version specified in the"
    " broker or if the inter.broker.protocol.version is 3.0 or newer. This configuration is"
    " deprecated and it will be removed in Apache Kafka 4.0.\n"
)


def test_a_format_version_has_kafkas_warning() -> None:
    words = ("n", "--config", "message.format.version=2.0")
    outcome, _ = create(*words)
    assert outcome.stdout == FORMAT_WARNING + "Created topic n.\n"
    outcome, _ = create(*words, "--output", "json")
    assert (outcome.data, outcome.stderr) == ([{"topic": "n", "created": True}], FORMAT_WARNING)


def test_a_topic_that_exists() -> None:
    outcome, _ = create("n", answer=EXISTS)
    said = "Error while executing topic command : Topic 'n' already exists.\nHint: "
    assert outcome.stderr.startswith(said)
    assert outcome.status == 1
    outcome, _ = create("n", "--if-not-exists", answer=EXISTS)
    assert (outcome.stdout, outcome.stderr, outcome.status) == ("", "", 0)
    outcome, _ = create("n", "--if-not-exists", "--output", "json", answer=EXISTS)
    assert outcome.data == [{"topic": "n", "created": False}]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--partitions", "0"], "The partitions must be greater than 0"),
        (["--replication-factor", "0"], "The replication factor must be between 1 and 32767"),
        (["--replication-factor", "32768"], "The replication factor must be between 1 and 32767"),
        (["--config", "nope=1"], "Unknown topic config name: nope"),
        (["--config", "segment.bytes=1"], "Invalid value 1 for configuration segment.bytes"),
        (["--config", "retention.ms"], "all configs to be added must be in the format"),
        (["--config", "retention.ms="], "all configs to be added must be in the format"),
        (["--config", "retention.ms=1=2"], "all configs to be added must be in the format"),
        (["--replica-assignment", "1:1"], "may not contain duplicate entries: 1"),
        (["--replica-assignment", "1:2,1"], "Partition 1 has different replication factor: [1]"),
        (["--replica-assignment", "1,2147483648"], "'2147483648' is not a list of broker ids"),
        (["--replica-assignment", "x"], "'x' is not a list of broker ids"),
    ],
)
def test_what_is_checked_before_the_cluster_is_asked(words: list[str], said: str) -> None:
    outcome, requests = create("n", *words)
    assert outcome.stderr.startswith("Error while executing topic command : ")
    assert said in outcome.stderr
    assert (outcome.status, requests) == (1, [])


def test_every_topic_config_is_known_and_checked() -> None:
    for name, key in TOPIC_CONFIGS.keys.items():
        if key.validator is not None or key.type.name not in ("STRING", "LIST"):
            with pytest.raises(ConfigError, match=name):
                parse_topic_configs([f"{name}=not allowed"])
    assert parse_topic_configs(["retention.ms=1"]) == {"retention.ms": "1"}


@pytest.mark.parametrize(
    "name", ["remote.storage.enable", "remote.log.copy.disable", "remote.log.delete.on.disable"]
)
def test_tiered_storage_is_left_to_the_brokers(name: str) -> None:
    """kafkapy's broker has none, and Apache Kafka's brokers may have it."""
    outcome, (request,) = create("n", "--config", f"{name}=true")
    assert (outcome.stdout, outcome.status) == ("Created topic n.\n", 0)
    (config,) = request.topics[0].configs
    assert (config.name, config.value) == (name, "true")


def test_trailing_commas_of_an_assignment_vanish() -> None:
    assert parse_replica_assignment("1:2,2:1,,") == [[1, 2], [2, 1]]


# alter and delete


def test_alter_is_silent() -> None:
    cluster = describing_cluster(CREATE_PARTITIONS=GROWN)
    outcome = topics("--alter", "--topic", "t", "--partitions", "7", cluster=cluster)
    assert (outcome.stdout, outcome.stderr, outcome.status) == ("", "", 0)
    (request,) = cluster.requests_of(ApiKey.CREATE_PARTITIONS)
    assert [(t.name, t.count, t.assignments) for t in request.topics] == [("t", 7, None)]


def test_alter_skips_the_assignment_of_old_partitions() -> None:
    cluster = describing_cluster(CREATE_PARTITIONS=GROWN)
    placed = "1:2,1:2,1:2,1:2,1:2,2:1"
    words = ("--alter", "--topic", "t", "--partitions", "6", "--replica-assignment", placed)
    topics(*words, cluster=cluster)
    (request,) = cluster.requests_of(ApiKey.CREATE_PARTITIONS)
    assert [a.broker_ids for a in request.topics[0].assignments] == [[2, 1]]


def test_delete_is_silent_and_takes_a_filter() -> None:
    cluster = describing_cluster(DELETE_TOPICS=DELETED)
    outcome = topics("--delete", "--topic", "t|plain", cluster=cluster)
    assert (outcome.stdout, outcome.stderr, outcome.status) == ("", "", 0)
    (request,) = cluster.requests_of(ApiKey.DELETE_TOPICS)
    assert [topic.name for topic in request.topics] == ["plain", "t"]


@pytest.mark.parametrize("action", [["--delete"], ["--alter", "--partitions", "9"], ["--describe"]])
def test_an_empty_name_is_not_every_topic(action: list[str]) -> None:
    cluster = describing_cluster(DELETE_TOPICS=DELETED, CREATE_PARTITIONS=GROWN)
    outcome = topics(*action, "--topic", "", cluster=cluster)
    assert "Topic '' does not exist as expected" in outcome.stderr
    assert outcome.status == 1
    assert not cluster.requests_of(ApiKey.DELETE_TOPICS)
    assert not cluster.requests_of(ApiKey.CREATE_PARTITIONS)


@pytest.mark.parametrize("action", [["--delete"], ["--alter", "--partitions", "2"], ["--describe"]])
def test_a_topic_that_is_not_there(action: list[str]) -> None:
    outcome = topics(*action, "--topic", "nope")
    assert outcome.stderr.startswith(
        "Error while executing topic command : Topic 'nope' does not exist as expected\nHint: "
    )
    assert outcome.status == 1
    outcome = topics(*action, "--topic", "nope", "--if-exists")
    assert (outcome.stdout, outcome.stderr, outcome.status) == ("", "", 0)


# describe


def test_describe_by_id() -> None:
    outcome = topics("--describe", "--topic-id", str(TOPIC_ID))
    assert outcome.stdout.count("Topic: t\tTopicId") == 1
    other = "AAAAAAAAAAAAAAAAAAAAAQ"
    outcome = topics("--describe", "--topic-id", other)
    assert f"TopicId '{other}' does not exist as expected" in outcome.stderr
    zero = topics("--describe", "--topic-id", "AAAAAAAAAAAAAAAAAAAAAA", "--topic", "plain")
    assert zero.stdout.startswith("Topic: plain\tPartitionCount: 1")


def test_describe_goes_on_where_reassignments_are_not_told() -> None:
    refused = ListPartitionReassignmentsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    cluster = describing_cluster(LIST_PARTITION_REASSIGNMENTS=refused)
    outcome = topics("--describe", "--topic", "t", cluster=cluster)
    assert outcome.status == 0
    assert "Adding Replicas" not in outcome.stdout


@pytest.mark.parametrize(
    ("flags", "partitions"),
    [
        (["--under-replicated-partitions"], [1, 2]),
        (["--unavailable-partitions"], [2, 3]),
        (["--under-min-isr-partitions"], [1, 2]),
        (["--at-min-isr-partitions"], [0, 3, 4]),
        (["--under-replicated-partitions", "--unavailable-partitions"], [1, 2, 3]),
    ],
)
def test_reports_pick_partitions_without_headers(flags: list[str], partitions: list[int]) -> None:
    lines = topics("--describe", "--topic", "t", *flags).stdout.splitlines()
    assert all(line.startswith("\tTopic: t\tPartition: ") for line in lines)
    assert [int(line.split("\t")[2].split()[1]) for line in lines] == partitions


def test_topics_with_overrides_are_headers_only() -> None:
    outcome = topics("--describe", "--topics-with-overrides")
    (line,) = outcome.stdout.splitlines()
    assert line.endswith("Configs: min.insync.replicas=2,retention.ms=5")


@pytest.mark.parametrize("words", [(), ("--output", "json")])
def test_a_topic_that_is_deleted_meanwhile_does_not_hide_the_others(words: tuple[str, ...]) -> None:
    def answer(request: Any, port: int) -> Any:
        found = describe_configs(request, port)
        for result in found.results:
            if result.resource_name == "plain":
                result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return found

    cluster = describing_cluster(DESCRIBE_CONFIGS=answer)
    outcome = topics("--describe", *words, cluster=cluster)
    if words:
        assert [topic["topic"] for topic in outcome.data] == ["t"]
    else:
        assert outcome.stdout.startswith("Topic: t\t")
        assert "plain" not in outcome.stdout
    assert outcome.stderr.startswith(
        "Error while executing topic command : This server does not host this topic-partition.\n"
    )
    assert outcome.status == 1
