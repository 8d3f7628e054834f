"""`kafkapy acls`: flags, Kafka's blocks, the question before entries go."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.create_acls import AclCreationResult, CreateAclsResponse
from kafkapy.protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsResponse
from kafkapy.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from tests.harness.scripted.cli import Outcome, kafkapy
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata

READ = AclDescription(principal="User:a", host="*", operation=3, permission_type=3)
WRITE = AclDescription(principal="User:b", host="h", operation=4, permission_type=2)
TOPIC = DescribeAclsResource(resource_type=2, resource_name="t", acls=[READ, WRITE])


def acl_cluster() -> ScriptedCluster:
    return ScriptedCluster(
        {
            ApiKey.METADATA: metadata(),
            ApiKey.DESCRIBE_ACLS: DescribeAclsResponse(resources=[TOPIC]),
            ApiKey.CREATE_ACLS: CreateAclsResponse(results=[AclCreationResult()]),
            ApiKey.DELETE_ACLS: DeleteAclsResponse(filter_results=[DeleteAclsFilterResult()]),
        }
    )


def acls(*words: str, cluster: ScriptedCluster | None = None, **more: Any) -> Outcome:
    chosen = cluster or acl_cluster()
    return kafkapy("acls", "--bootstrap-server", "b:1", *words, cluster=chosen, **more)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--topic", "t"], "Command must include exactly one action: --list, --add, --remove."),
        (["--list", "--allow-host", "h"], 'Option "[list]" can\'t be used with option "[allow-h'),
        (["--add", "--topic", "t"], "You must specify one of: --allow-principal, --deny-principal"),
        (["--remove"], "You must provide at least one resource: --topic <topic> or --cluster"),
        (["--add", "--consumer", "--group", "g"], "With --consumer you must specify a --topic and"),
        (["--list", "--resource-pattern-type", "odd"], "Unknown resourcePatternType odd"),
        (
            ["--add", "--topic", "t", "--allow-principal", "alice"],
            "Error while executing ACL command: expected a string in format principalType:",
        ),
        (
            ["--list", "--principal", "alice"],
            "Error while executing ACL command: expected a string in format principalType:",
        ),
    ],
)
def test_wrong_words(words: list[str], said: str) -> None:
    done = acls(*words)
    assert said in done.stderr
    assert (done.stdout, done.status) == ("", 1)


def test_entries_are_shown_as_they_are_added() -> None:
    cluster = acl_cluster()
    who = ("--allow-principal", "User:alice", "--operation", "Read", "--operation", "Write")
    assert acls("--add", *who, "--topic", "t", cluster=cluster).stdout == (
        "Adding ACLs for resource `ResourcePattern(resourceType=TOPIC, name=t,"
        " patternType=LITERAL)`: \n"
        " \t(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)\n"
        "\t(principal=User:alice, host=*, operation=WRITE, permissionType=ALLOW) \n"
        "\n"
    )
    assert len(cluster.requests_of(ApiKey.CREATE_ACLS)[0].creations) == 2


def test_lists_by_resource_and_by_principal() -> None:
    blocks = acls("--list").stdout
    assert blocks.count("Current ACLs for resource") == 1
    assert blocks.count("(principal=") == 2
    mine = acls("--list", "--principal", "User:b").stdout
    assert mine.startswith("ACLs for principal `User:b`\nCurrent ACLs for resource")
    assert mine.count("(principal=") == 1
    assert acls("--list", "--principal", " User:b ").stdout == mine
    assert acls("--list", "--output", "json").data[0] == {
        "resource_type": "TOPIC",
        "name": "t",
        "pattern_type": "LITERAL",
        "principal": "User:a",
        "host": "*",
        "operation": "READ",
        "permission": "ALLOW",
    }


@pytest.mark.parametrize(("answer", "asked"), [(b"y\n", 1), (b"no\n", 0), (b"", 0)])
def test_only_yes_removes(answer: bytes, asked: int) -> None:
    cluster = acl_cluster()
    done = acls("--remove", "--topic", "t", cluster=cluster, stdin=answer)
    assert done.stdout.startswith(
        "Are you sure you want to delete all ACLs for resource filter"
        " `ResourcePatternFilter(resourceType=TOPIC, name=t, patternType=LITERAL)`? (y/n)\n"
    )
    assert len(cluster.requests_of(ApiKey.DELETE_ACLS)) == asked


def test_json_stays_json_behind_the_question() -> None:
    done = acls("--remove", "--topic", "t", "--output", "json", stdin=b"y\n")
    [row] = done.data
    assert (row["name"], done.stderr[:12]) == ("t", "Are you sure")


def test_force_does_not_ask() -> None:
    done = acls("--remove", "--topic", "t", "--force")
    assert (done.stdout, done.status) == ("", 0)


@pytest.mark.parametrize("action", ["--add", "--remove"])
def test_after_a_refusal_a_program_knows_which_resources_were_changed(action: str) -> None:
    cluster = acl_cluster()
    refused = {"error_code": ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
    cluster.script[ApiKey.CREATE_ACLS] = [
        CreateAclsResponse(results=[AclCreationResult()]),
        CreateAclsResponse(results=[AclCreationResult(**refused)]),
    ]
    cluster.script[ApiKey.DELETE_ACLS] = [
        DeleteAclsResponse(filter_results=[DeleteAclsFilterResult()]),
        DeleteAclsResponse(filter_results=[DeleteAclsFilterResult(**refused)]),
    ]
    who = ("--force", "--allow-principal", "User:alice", "--operation", "Read")
    topics = ("--topic", "t", "--topic", "u", "--output", "json")
    done = acls(action, *who, *topics, cluster=cluster)
    assert [row["name"] for row in done.data] == ["t"]
    assert "Error while executing ACL command: Cluster authorization failed." in done.stderr
    assert done.status == 1
