"""Credentials on the wire: only salted passwords leave."""

from __future__ import annotations

import hashlib

import pytest

from kafkapy.admin.scram import NewCredential, alter_scram, describe_scram
from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages import alter_user_scram_credentials as altered
from kafkapy.protocol.messages import describe_user_scram_credentials as described
from kafkapy.security.sasl.scram import ScramMechanism
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata

SHA256, SHA512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512


def scripted(key: ApiKey, answer: object) -> tuple[ScriptedCluster, Cluster]:
    made = ScriptedCluster({ApiKey.METADATA: metadata(), key: answer})
    return made, Cluster("b:1", connector=made.connect)


def test_users_without_credentials_are_left_out() -> None:
    infos = [described.CredentialInfo(mechanism=2, iterations=8192)]
    results = [
        described.DescribeUserScramCredentialsResult(user="a", credential_infos=infos),
        described.DescribeUserScramCredentialsResult(
            user="b", error_code=ErrorCode.RESOURCE_NOT_FOUND
        ),
    ]
    answer = described.DescribeUserScramCredentialsResponse(results=results)
    script, cluster = scripted(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, answer)
    assert describe_scram(cluster, ["a", "b"]) == {"a": {SHA512: 8192}}
    (asked,) = script.requests_of(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS)
    assert [user.name for user in asked.users] == ["a", "b"]


def test_a_password_is_salted_here() -> None:
    answer = altered.AlterUserScramCredentialsResponse(
        results=[altered.AlterUserScramCredentialsResult(user="a")]
    )
    script, cluster = scripted(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, answer)
    alter_scram(cluster, "a", {SHA256: NewCredential("secret", 5000)}, [SHA512])
    (asked,) = script.requests_of(ApiKey.ALTER_USER_SCRAM_CREDENTIALS)
    (made,), (gone,) = asked.upsertions, asked.deletions
    assert (made.name, made.mechanism, made.iterations) == ("a", 1, 5000)
    salted = hashlib.pbkdf2_hmac("sha256", b"secret", made.salt, 5000)
    assert made.salted_password == salted
    assert len(set(made.salt)) > 1
    assert (gone.name, gone.mechanism) == ("a", 2)


def test_a_refusal_has_the_brokers_words() -> None:
    refusal = altered.AlterUserScramCredentialsResult(
        user="a", error_code=ErrorCode.RESOURCE_NOT_FOUND, error_message="no such credential"
    )
    answer = altered.AlterUserScramCredentialsResponse(results=[refusal])
    with pytest.raises(ApiError, match="no such credential"):
        alter_scram(scripted(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, answer)[1], "a", {}, [SHA256])
