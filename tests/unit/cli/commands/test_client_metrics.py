"""`kafkapy client-metrics`: what is refused, and what is asked of the broker."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.common.config_def import ConfigSource
from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.describe_configs import (
    DescribeConfigsResponse,
    DescribeConfigsResult,
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
from tests.harness.scripted.scripted_topics import config_entry, describing_cluster

SET, DELETE = 0, 1
NAMED = ListConfigResourcesResponse(config_resources=[ConfigResource(resource_name="m")])
ALTERED = IncrementalAlterConfigsResponse(responses=[AlterConfigsResourceResponse()])
DESCRIBED = DescribeConfigsResponse(
    results=[
        DescribeConfigsResult(
            resource_type=16,
            resource_name="m",
            configs=[
                config_entry("metrics", "*", ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG),
                config_entry("interval.ms", "300000", ConfigSource.DEFAULT_CONFIG),
            ],
        )
    ]
)


@pytest.fixture
def cluster() -> ScriptedCluster:
    return describing_cluster(
        LIST_CONFIG_RESOURCES=NAMED,
        DESCRIBE_CONFIGS=DESCRIBED,
        INCREMENTAL_ALTER_CONFIGS=ALTERED,
    )


def run(cluster: ScriptedCluster, *words: str) -> Outcome:
    return kafkapy("client-metrics", "--bootstrap-server", "b:1", *words, cluster=cluster)


def altered(cluster: ScriptedCluster) -> tuple[str, dict[str, tuple[int, Any]]]:
    """The resource of the last change, and the operation and value of each key."""
    (resource,) = cluster.requests_of(ApiKey.INCREMENTAL_ALTER_CONFIGS)[-1].resources
    assert resource.resource_type == 16
    rows = {each.name: (each.config_operation, each.value) for each in resource.configs}
    return resource.resource_name, rows


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Command must include exactly one action: --alter, --delete, --describe or --list."),
        (["--list", "--describe"], "Command must include exactly one action"),
        (["--alter"], "One of --name or --generate-name must be specified with --alter."),
        (
            ["--alter", "--name", "m", "--generate-name"],
            "One of --name or --generate-name must be specified with --alter.",
        ),
        (
            ["--alter", "--name", "m", "--interval", "x"],
            "Invalid interval value. Enter an integer, or leave empty to reset.",
        ),
        (["--delete"], "A client metrics resource name must be specified with --delete."),
        (["--list", "--name", "m"], 'Option "[list]" can\'t be used with option "[name]"'),
        (
            ["--describe", "--interval", "3"],
            'Option "[describe]" can\'t be used with option "[interval]"',
        ),
        (
            ["--delete", "--name", "m", "--metrics", "a"],
            'Option "[delete]" can\'t be used with option "[metrics]"',
        ),
    ],
)
def test_wrong_usage(cluster: ScriptedCluster, words: list[str], said: str) -> None:
    outcome = run(cluster, *words)
    assert outcome.status != 0
    assert said in outcome.stderr


def test_a_server_is_needed() -> None:
    assert "--bootstrap-server must be specified." in kafkapy("client-metrics", "--list").stderr


def test_alter_sets_what_is_given_and_deletes_what_is_empty(cluster: ScriptedCluster) -> None:
    match = "client_id=x,client_source_port=1"
    words = ("--interval", "2000", "--metrics", "a,b", "--match", match)
    outcome = run(cluster, "--alter", "--name", "m", *words)
    assert outcome.stdout == "Altered client metrics config for m.\n"
    assert altered(cluster) == (
        "m",
        {
            "interval.ms": (SET, "2000"),
            "metrics": (SET, "a,b"),
            "match": (SET, match),
        },
    )
    run(cluster, "--alter", "--name", "m", "--interval", "", "--match", "")
    assert altered(cluster)[1] == {"interval.ms": (DELETE, None), "match": (DELETE, None)}


def test_a_name_is_made(cluster: ScriptedCluster) -> None:
    outcome = run(cluster, "--alter", "--generate-name", "--metrics", "*")
    name, rows = altered(cluster)
    assert (len(name), rows) == (22, {"metrics": (SET, "*")})
    assert outcome.stdout == f"Altered client metrics config for {name}.\n"


def test_delete_removes_all_configs(cluster: ScriptedCluster) -> None:
    outcome = run(cluster, "--delete", "--name", "m")
    assert outcome.stdout == "Deleted client metrics config for m.\n"
    assert altered(cluster) == ("m", {"interval.ms": (DELETE, None), "metrics": (DELETE, None)})


def test_describe_and_list(cluster: ScriptedCluster) -> None:
    described = "Client metrics configs for m are:\n  interval.ms=300000\n  metrics=*\n"
    assert run(cluster, "--describe").stdout == described
    assert run(cluster, "--describe", "--name", "m").stdout == described
    assert run(cluster, "--describe", "--name", "n").stdout == (
        "The client metric resource n doesn't exist and doesn't have dynamic config.\n"
    )
    assert run(cluster, "--list").stdout == "m\n"


def test_what_the_broker_refuses() -> None:
    row = AlterConfigsResourceResponse(error_code=ErrorCode.INVALID_REQUEST, error_message="No.")
    refusing = IncrementalAlterConfigsResponse(responses=[row])
    cluster = describing_cluster(INCREMENTAL_ALTER_CONFIGS=refusing)
    outcome = run(cluster, "--alter", "--name", "m", "--interval", "1")
    assert "Error while executing client metrics command : No.\n" in outcome.stderr
