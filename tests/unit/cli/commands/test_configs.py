"""`kafkapy configs`: who is meant, what is refused, what is asked of which broker."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.cli.commands.configs import ConfigsOptions, Entity, entities_of
from kafkapy.common.config_def import ConfigSource
from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.alter_client_quotas import (
    AlterClientQuotasResponse,
    EntryDataResponse,
)
from kafkapy.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from kafkapy.protocol.messages.describe_configs import (
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kafkapy.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsResponse,
)
from kafkapy.protocol.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from kafkapy.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesResponse,
)
from tests.harness.scripted.cli import Outcome, kafkapy
from tests.harness.scripted.scripted_broker import ScriptedCluster
from tests.harness.scripted.scripted_topics import BROKERS, config_entry, describing_cluster

ALTERED = IncrementalAlterConfigsResponse(responses=[AlterConfigsResourceResponse()])


def configs(*words: str, cluster: ScriptedCluster | None = None, **more: Any) -> Outcome:
    chosen = cluster or describing_cluster()
    return kafkapy("configs", "--bootstrap-server", "b:1", *words, cluster=chosen, **more)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Command must include exactly one action: --describe, --alter"),
        (["--describe", "--alter"], "Command must include exactly one action"),
        (["--describe"], "At least one entity type must be specified"),
        (["--describe", "--entity-type", "x"], "Invalid entity type x, the entity type must be"),
        (
            ["--describe", "--entity-type", "users", "--entity-type", "users"],
            "Duplicate entity type(s) specified: users",
        ),
        (
            ["--describe", "--entity-type", "users", "--entity-type", "topics"],
            "Only 'users' and 'clients' entity types may be specified together",
        ),
        (
            ["--describe", "--topic", "t", "--entity-type", "topics"],
            "Duplicate entity type(s) specified: topics",
        ),
        (
            ["--describe", "--topic", "t", "--entity-type", "brokers"],
            "--entity-{type,name,default} should not be used in conjunction",
        ),
        (
            ["--alter", "--entity-type", "topics", "--add-config", "a=1"],
            "an entity name must be specified with --alter of topics",
        ),
        (
            ["--alter", "--entity-type", "brokers", "--add-config", "a=1"],
            "an entity-name or default entity must be specified with --alter of users, clients",
        ),
        (
            ["--alter", "--entity-type", "topics", "--entity-default", "--add-config", "a=1"],
            "an entity name must be specified with --alter of topics",
        ),
        (
            ["--describe", "--entity-type", "broker-loggers"],
            "an entity name must be specified with --describe of broker-loggers",
        ),
        (
            ["--describe", "--entity-type", "brokers", "--entity-name", "x"],
            "The entity name for brokers must be a valid integer broker id, but it is: x",
        ),
        (
            ["--describe", "--broker", "2147483648"],
            "must be a valid integer broker id, but it is: 2147483648",
        ),
        (
            ["--describe", "--broker", "²"],
            "The entity name for brokers must be a valid integer broker id, but it is: ²",
        ),
        (
            ["--alter", "--ip", "1.2.3.4.5", "--add-config", "a=1"],
            "The entity name for ips must be a valid IP or resolvable host, but it is: 1.2.3.4.5",
        ),
        (
            ["--describe", "--ip", "no.such.host.invalid"],
            "must be a valid IP or resolvable host, but it is: no.such.host.invalid",
        ),
        (
            ["--describe", "--entity-type", "ips", "--entity-name", "a" * 64 + ".example"],
            "The entity name for ips must be a valid IP or resolvable host, but it is: aaaa",
        ),
        (
            ["--alter", "--topic", "t"],
            "At least one of --add-config, --add-config-file, or --delete-config must be",
        ),
        (
            ["--alter", "--topic", "t", "--add-config", "a=1", "--add-config-file", "f"],
            "Only one of --add-config or --add-config-file must be specified",
        ),
        (
            ["--describe", "--topic", "t", "--add-config", "a=1"],
            'Option "[describe]" can\'t be used with option "[add-config]"',
        ),
        (
            ["--alter", "--topic", "t", "--all", "--add-config", "a=1"],
            'Option "[alter]" can\'t be used with option "[all]"',
        ),
        (
            [
                "--alter",
                "--entity-type",
                "users",
                "--entity-type",
                "clients",
                "--entity-name",
                "u",
                "--add-config",
                "a=1",
            ],
            "An entity name must be specified for every entity type",
        ),
        (["--alter", "--topic", "t", "--add-config-file", "/nope"], "Cannot read /nope"),
        (["--alter", "--topic", "t", "--add-config", "a"], "must be in the format"),
    ],
)
def test_wrong_usage(words: list[str], said: str) -> None:
    cluster = describing_cluster()
    outcome = configs(*words, cluster=cluster)
    assert outcome.stderr.startswith(said) or said in outcome.stderr.splitlines()[0]
    assert (outcome.stdout, outcome.status, cluster.requests) == ("", 1, [])


def test_a_server_is_needed() -> None:
    outcome = kafkapy("configs", "--describe", "--topic", "t")
    assert outcome.stderr.startswith("One of the required --bootstrap-server")


def test_types_and_names_pair_in_their_order() -> None:
    options = ConfigsOptions(entity_type=["users", "clients"], entity_name=["u", ""])
    assert entities_of(options) == [Entity("users", "u"), Entity("clients", "")]
    assert entities_of(ConfigsOptions(entity_type=["topics"])) == [Entity("topics", None)]
    assert entities_of(ConfigsOptions(broker_defaults=True)) == [Entity("brokers", "")]
    assert entities_of(ConfigsOptions(user="u", client="c")) == [
        Entity("clients", "c"),
        Entity("users", "u"),
    ]


def test_describe_shows_what_is_dynamic() -> None:
    outcome = configs("--describe", "--topic", "t")
    assert outcome.stdout.splitlines()[0] == "Dynamic configs for topic t are:"
    assert "retention.ms=5" in outcome.stdout
    assert "segment.bytes" not in outcome.stdout
    everything = configs("--describe", "--entity-type=topics", "--entity-name=t", "--all")
    assert everything.stdout.splitlines()[0] == "All configs for topic t are:"
    assert "segment.bytes=1073741824" in everything.stdout


def test_describe_of_every_topic_and_every_broker() -> None:
    assert configs("--describe", "--entity-type", "topics").stdout.count("are:\n") == 2
    cluster = describing_cluster()
    outcome = configs("--describe", "--entity-type", "brokers", cluster=cluster)
    assert outcome.stdout.splitlines() == [
        "Dynamic configs for broker 1 are:",
        "Dynamic configs for broker 2 are:",
        "Default configs for brokers in the cluster are:",
    ]
    asked = [
        (port, [r.resource_name for r in request.resources])
        for port, request, _ in cluster.requests
        if request.API_KEY == ApiKey.DESCRIBE_CONFIGS
    ]
    assert asked == [(BROKERS[1], ["1"]), (BROKERS[2], ["2"]), (1, [""])]


def test_alter_sets_and_deletes_in_one_request() -> None:
    cluster = describing_cluster(INCREMENTAL_ALTER_CONFIGS=ALTERED)
    words = (
        "--add-config",
        "cleanup.policy=[compact,delete],x=",
        "--delete-config",
        "retention.ms",
    )
    outcome = configs("--alter", "--topic", "t", *words, cluster=cluster)
    assert outcome.stdout == "Completed updating config for topic t.\n"
    (request,) = cluster.requests_of(ApiKey.INCREMENTAL_ALTER_CONFIGS)
    changes = [(c.name, c.config_operation, c.value) for c in request.resources[0].configs]
    assert changes == [
        ("cleanup.policy", 0, "compact,delete"),
        ("x", 0, ""),
        ("retention.ms", 1, None),
    ]


def test_a_file_of_configs(tmp_path: Any) -> None:
    (tmp_path / "f").write_text("a=1,2\nb=[3]\n")
    cluster = describing_cluster(INCREMENTAL_ALTER_CONFIGS=ALTERED)
    configs("--alter", "--topic", "t", "--add-config-file", str(tmp_path / "f"), cluster=cluster)
    (request,) = cluster.requests_of(ApiKey.INCREMENTAL_ALTER_CONFIGS)
    assert {c.name: c.value for c in request.resources[0].configs} == {"a": "1,2", "b": "[3]"}


def test_a_key_to_delete_that_is_not_set_changes_nothing() -> None:
    cluster = describing_cluster()
    words = ("--delete-config", "retention.ms,segment.bytes,nope", "--add-config", "a=1")
    outcome = configs("--alter", "--topic", "t", *words, cluster=cluster)
    assert outcome.stderr == "Invalid config(s): segment.bytes,nope\n"
    assert cluster.requests_of(ApiKey.INCREMENTAL_ALTER_CONFIGS) == []


def test_a_format_version_has_kafkas_warning() -> None:
    cluster = describing_cluster(INCREMENTAL_ALTER_CONFIGS=ALTERED)
    words = ("--alter", "--topic", "t", "--add-config", "message.format.version=2.0")
    outcome = configs(*words, cluster=cluster)
    warning, completed = outcome.stdout.splitlines()
    assert warning.startswith("WARNING: The configuration message.format.version=2.0 is specified.")
    assert completed == "Completed updating config for topic t."
    outcome = configs(*words, "--output", "json", cluster=cluster)
    assert outcome.stderr == f"{warning}\n"
    assert outcome.data[0]["set"] == {"message.format.version": "2.0"}


def test_an_empty_key_to_delete_is_refused() -> None:
    cluster = describing_cluster(INCREMENTAL_ALTER_CONFIGS=ALTERED)
    outcome = configs("--alter", "--topic", "t", "--delete-config", "", cluster=cluster)
    assert (outcome.stdout, outcome.stderr, outcome.status) == ("", "Invalid config(s): \n", 1)


def test_what_the_broker_refuses_is_plain() -> None:
    refused = IncrementalAlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=ErrorCode.INVALID_CONFIG, error_message="Unknown topic config name: a"
            )
        ]
    )
    cluster = describing_cluster(INCREMENTAL_ALTER_CONFIGS=refused)
    outcome = configs("--alter", "--topic", "t", "--add-config", "a=1", cluster=cluster)
    assert outcome.stderr.splitlines() == [
        "Unknown topic config name: a",
        "Hint: kafkapy configs --describe --all shows the names",
    ]
    assert outcome.status == 1


def test_other_failures_show_the_arguments() -> None:
    missing = DescribeConfigsResponse(
        results=[DescribeConfigsResult(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    )
    outcome = configs(
        "--describe", "--topic", "t", cluster=describing_cluster(DESCRIBE_CONFIGS=missing)
    )
    assert outcome.stderr.startswith(
        "Error while executing config command with args '--bootstrap-server b:1 --describe "
        "--topic t': This server does not host this topic-partition.\nHint: "
    )


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (
            ["--user", "u", "--add-config", "SCRAM-SHA-256=[iterations=4096,password=sekret]"],
            "--user u --add-config SCRAM-SHA-256=[hidden]",
        ),
        (
            ["--broker", "1", "--add-config=a=1, listener.name.x.ssl.key.password = sekret,b=2"],
            "--broker 1 --add-config=a=1, listener.name.x.ssl.key.password=[hidden]",
        ),
        (
            ["--broker", "1", "--add-config", 'a.sasl.jaas.config=[x password="sekret";]'],
            "--broker 1 --add-config a.sasl.jaas.config=[hidden]",
        ),
    ],
)
def test_other_failures_show_no_password(words: list[str], shown: str) -> None:
    """Terminals are recorded, and the output of jobs is kept."""
    cluster = describing_cluster()
    cluster.refuse = {1}
    outcome = configs("--alter", *words, cluster=cluster)
    assert f"with args '--bootstrap-server b:1 --alter {shown}': No bootstrap" in outcome.stderr
    assert "sekret" not in outcome.stdout + outcome.stderr


def test_loggers_must_exist() -> None:
    def loggers(request: Any, port: int) -> DescribeConfigsResponse:
        entry = config_entry("kafka.x", "INFO", ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG)
        result = DescribeConfigsResult(resource_type=8, resource_name="1", configs=[entry])
        return DescribeConfigsResponse(results=[result])

    cluster = describing_cluster(DESCRIBE_CONFIGS=loggers, INCREMENTAL_ALTER_CONFIGS=ALTERED)
    outcome = configs("--alter", "--broker-logger", "1", "--add-config", "no=INFO", cluster=cluster)
    assert outcome.stderr == "Invalid broker logger(s): no\n"
    outcome = configs(
        "--alter", "--broker-logger", "1", "--add-config", "kafka.x=DEBUG", cluster=cluster
    )
    assert outcome.stdout == "Completed updating config for broker-logger 1.\n"


QUOTA = DescribeClientQuotasResponse(
    entries=[
        EntryData(
            entity=[EntityData(entity_type="user", entity_name="u")],
            values=[ValueData(key="producer_byte_rate", value=1024.0)],
        )
    ]
)


def test_quotas_are_described() -> None:
    cluster = describing_cluster(
        DESCRIBE_CLIENT_QUOTAS=QUOTA,
        DESCRIBE_USER_SCRAM_CREDENTIALS=DescribeUserScramCredentialsResponse(),
    )
    outcome = configs("--describe", "--user", "u", cluster=cluster)
    assert outcome.stdout == (
        "Quota configs for user-principal 'u' are producer_byte_rate=1024.0\n"
    )
    (request,) = cluster.requests_of(ApiKey.DESCRIBE_CLIENT_QUOTAS)
    (component,) = request.components
    assert (component.entity_type, component.match_type, component.match) == ("user", 0, "u")
    assert request.strict


def test_quotas_are_altered() -> None:
    cluster = describing_cluster(
        DESCRIBE_CLIENT_QUOTAS=QUOTA,
        ALTER_CLIENT_QUOTAS=AlterClientQuotasResponse(entries=[EntryDataResponse()]),
    )
    words = ("--add-config", "request_percentage=5", "--delete-config", "producer_byte_rate")
    outcome = configs("--alter", "--user", "u", *words, cluster=cluster)
    assert outcome.stdout == "Completed updating config for user u.\n"
    (request,) = cluster.requests_of(ApiKey.ALTER_CLIENT_QUOTAS)
    operations = [(op.key, op.value, op.remove) for op in request.entries[0].ops]
    assert operations == [("request_percentage", 5.0, False), ("producer_byte_rate", 0.0, True)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--user", "u", "--add-config", "SCRAM-SHA-1=[password=p]"],
            "Only quota and SCRAM credential configs can be added for 'users'",
        ),
        (
            ["--user", "u", "--add-config", "SCRAM-SHA-256=[password=p],foo=1"],
            "Unexpected config names: foo",
        ),
        (["--ip", "::1", "--add-config", "x=1"], "Only connection_creation_rate quota configs"),
        (
            ["--client", "c", "--add-config", "request_percentage=x"],
            "Cannot parse quota configuration value for request_percentage: x",
        ),
        (["--user", "u", "--delete-config", "x"], "Invalid config(s): x"),
        (["--user", "u", "--delete-config", ""], "Invalid config(s): \n"),
    ],
)
def test_quotas_that_are_refused(words: list[str], said: str) -> None:
    outcome = configs("--alter", *words, cluster=describing_cluster(DESCRIBE_CLIENT_QUOTAS=QUOTA))
    assert said in outcome.stderr
    assert outcome.status == 1


def test_a_broker_without_quotas_says_so() -> None:
    cluster = describing_cluster()
    cluster.versions = {k: v for k, v in cluster.versions.items() if "QUOTAS" not in ApiKey(k).name}
    outcome = configs("--describe", "--entity-type", "users", cluster=cluster)
    assert outcome.stderr.endswith("The broker does not support DESCRIBE_CLIENT_QUOTAS\n")


@pytest.mark.parametrize(
    ("words", "name"), [(("--group", "g"), "group"), (("--client-metrics", "g"), "client-metric")]
)
def test_a_resource_without_configs_is_said_to_have_none(words: tuple[str, ...], name: str) -> None:
    kind = {"group": 32, "client-metric": 16}[name]
    inherited = config_entry("a", "1", ConfigSource.DEFAULT_CONFIG)
    row = DescribeConfigsResult(resource_type=kind, resource_name="g", configs=[inherited])
    cluster = describing_cluster(DESCRIBE_CONFIGS=DescribeConfigsResponse(results=[row]))
    done = configs("--describe", *words, cluster=cluster)
    assert done.stdout == f"The {name} 'g' doesn't exist and doesn't have dynamic config.\n"
    done = configs("--describe", "--all", *words, cluster=cluster)
    assert done.stdout.startswith(f"All configs for {name} g are:\n  a=1 ")


def test_every_subscription_to_client_metrics_is_described() -> None:
    named = ListConfigResourcesResponse(config_resources=[ConfigResource(resource_name="m")])
    cluster = describing_cluster(LIST_CONFIG_RESOURCES=named)
    done = configs("--describe", "--entity-type", "client-metrics", cluster=cluster)
    assert done.stdout == "Dynamic configs for client-metric m are:\n"
    (asked,) = cluster.requests_of(ApiKey.DESCRIBE_CONFIGS)
    assert [(each.resource_type, each.resource_name) for each in asked.resources] == [(16, "m")]


@pytest.mark.parametrize("words", [(), ("--output", "json")])
def test_the_brokers_that_answer_are_shown_although_another_does_not(
    words: tuple[str, ...],
) -> None:
    cluster = describing_cluster()
    cluster.refuse = {BROKERS[1]}
    outcome = configs("--describe", "--entity-type", "brokers", *words, cluster=cluster)
    if words:
        assert [each["entity_name"] for each in outcome.data] == ["2", ""]
    else:
        assert [line for line in outcome.stdout.splitlines() if line.endswith("are:")] == [
            "Dynamic configs for broker 2 are:",
            "Default configs for brokers in the cluster are:",
        ]
    assert "Connection to b:9001 could not be established" in outcome.stderr
    assert outcome.status == 1


def test_a_broker_that_does_not_answer_is_an_error_alone() -> None:
    cluster = describing_cluster()
    cluster.refuse = {BROKERS[2]}
    words = ("--describe", "--entity-type", "brokers", "--entity-name", "2")
    outcome = configs(*words, cluster=cluster)
    assert (outcome.stdout, outcome.status) == ("", 1)
