"""Users' credentials through `kafkapy configs`; quotas are in test_configs."""

from __future__ import annotations

import math
from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages import alter_client_quotas
from kafkapy.protocol.messages import alter_user_scram_credentials as altered
from kafkapy.protocol.messages import describe_user_scram_credentials as described
from kafkapy.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from tests.harness.scripted.cli import Outcome, kafkapy
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata

USER = ("--entity-type", "users", "--entity-name", "u")


def user_cluster(**script: Any) -> ScriptedCluster:
    info = described.CredentialInfo(mechanism=1, iterations=4096)
    found = described.DescribeUserScramCredentialsResult(user="u", credential_infos=[info])
    answers = {
        ApiKey.METADATA: metadata(),
        ApiKey.DESCRIBE_CLIENT_QUOTAS: DescribeClientQuotasResponse(entries=[]),
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: described.DescribeUserScramCredentialsResponse(
            results=[found]
        ),
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: altered.AlterUserScramCredentialsResponse(
            results=[altered.AlterUserScramCredentialsResult(user="u")]
        ),
    }
    return ScriptedCluster(answers | {ApiKey[name]: answer for name, answer in script.items()})


def configs(*words: str, cluster: ScriptedCluster | None = None) -> Outcome:
    chosen = cluster or user_cluster()
    return kafkapy("configs", "--bootstrap-server", "b:1", *words, cluster=chosen)


def test_credentials_are_told_not_shown() -> None:
    line = "SCRAM credential configs for user-principal 'u' are SCRAM-SHA-256=iterations=4096\n"
    assert configs("--describe", *USER).stdout == line
    assert configs("--describe", "--entity-type", "users").stdout == line
    assert configs("--describe", "--entity-type", "users", "--entity-default").stdout == ""
    assert configs("--describe", *USER, "--output", "json").data == [
        {"entity": {"user": "u"}, "configs": {"SCRAM-SHA-256": "iterations=4096"}}
    ]


@pytest.mark.parametrize(
    ("words", "user", "scope"),
    [(USER, "u", " for user-principal 'u'"), (USER[:2], None, "")],
)
def test_users_whose_credentials_were_refused_do_not_look_like_users_without_credentials(
    words: tuple[str, ...], user: str | None, scope: str
) -> None:
    quota = EntryData(
        entity=[EntityData(entity_type="user", entity_name="u")],
        values=[ValueData(key="request_percentage", value=3.0)],
    )
    cluster = user_cluster(
        DESCRIBE_CLIENT_QUOTAS=DescribeClientQuotasResponse(entries=[quota]),
        DESCRIBE_USER_SCRAM_CREDENTIALS=described.DescribeUserScramCredentialsResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        ),
    )
    done = configs("--describe", *words, cluster=cluster)
    assert done.stdout == (
        "Quota configs for user-principal 'u' are request_percentage=3.0\n"
        f"Error retrieving SCRAM credential configs{scope}: Cluster authorization failed.\n"
    )
    assert "Cluster authorization failed." in done.stderr
    assert done.status == 1
    _, row = configs("--describe", *words, "--output", "json", cluster=cluster).data
    assert (row["entity"], row["error"]) == ({"user": user}, "CLUSTER_AUTHORIZATION_FAILED")


def test_a_credential_is_set_and_deleted() -> None:
    cluster = user_cluster()
    words = ("--add-config", "SCRAM-SHA-512=[iterations=8192,password=x]")
    done = configs("--alter", *USER, *words, "--delete-config", "SCRAM-SHA-256", cluster=cluster)
    assert done.stdout == "Completed updating config for user u.\n"
    (asked,) = cluster.requests_of(ApiKey.ALTER_USER_SCRAM_CREDENTIALS)
    assert [(each.mechanism, each.iterations) for each in asked.upsertions] == [(2, 8192)]
    assert [each.mechanism for each in asked.deletions] == [1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            [*USER, "--add-config", "SCRAM-SHA-256=[password=x],request_percentage=1"],
            "Cannot alter both quota and SCRAM credential configs simultaneously for 'users'",
        ),
        ([*USER, "--add-config", "SCRAM-SHA-256=x"], "Invalid credential property SCRAM-SHA-256=x"),
        ([*USER, "--delete-config", "SCRAM-SHA-512"], "Invalid config(s): SCRAM-SHA-512"),
        (
            [*USER[:2], "--entity-default", "--add-config", "SCRAM-SHA-256=[password=x]"],
            "is not allowed with User SCRAM Credentials using --bootstrap-server.",
        ),
    ],
)
def test_refusals(words: list[str], said: str) -> None:
    done = configs("--alter", *words)
    assert said in done.stderr
    assert (done.stdout, done.status) == ("", 1)


@pytest.mark.parametrize(
    "text", ["1_000", "inf", "nan", "infinity", "", "1e", "0x", "1dd", "\u0663"]
)
def test_quotas_that_java_does_not_read(text: str) -> None:
    done = configs("--alter", *USER, "--add-config", f"request_percentage={text}")
    said = f"Cannot parse quota configuration value for request_percentage: {text}\n"
    assert (done.stdout, done.stderr, done.status) == ("", said, 1)


@pytest.mark.parametrize(
    ("text", "number"),
    [("+1e3", 1e3), ("1024d", 1024), (".5F", 0.5), ("7.", 7), ("-Infinity", -math.inf)],
)
def test_quotas_that_java_reads(text: str, number: float) -> None:
    answer = alter_client_quotas.AlterClientQuotasResponse()
    cluster = user_cluster(ALTER_CLIENT_QUOTAS=answer)
    configs("--alter", *USER, "--add-config", f"request_percentage={text}", cluster=cluster)
    (asked,) = cluster.requests_of(ApiKey.ALTER_CLIENT_QUOTAS)
    assert asked.entries[0].ops[0].value == number
