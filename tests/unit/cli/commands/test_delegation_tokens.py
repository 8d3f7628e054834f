"""`kafkapy delegation-tokens`: flags, Kafka's text, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.create_delegation_token import CreateDelegationTokenResponse
from kafkapy.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenResponse,
)
from kafkapy.protocol.messages.expire_delegation_token import ExpireDelegationTokenResponse
from kafkapy.protocol.messages.renew_delegation_token import RenewDelegationTokenResponse
from kafkapy.tools.java_format import DateFormat
from tests.harness.scripted.cli import Outcome, kafkapy
from tests.harness.scripted.scripted_broker import ScriptedCluster

ISSUE_MS, EXPIRY_MS, MAX_MS = 1_795_376_790_118, 1_795_463_190_118, 1_795_981_590_118
ISSUE, EXPIRY, MAX = map(DateFormat("yyyy-MM-dd'T'HH:mm").format, (ISSUE_MS, EXPIRY_MS, MAX_MS))
WHO = {
    "principal_type": "User",
    "principal_name": "alice",
    "token_requester_principal_type": "User",
    "token_requester_principal_name": "admin",
}
HEAD = (
    "TOKENID         HMAC                           OWNER           REQUESTER       RENEWERS"
    "                  ISSUEDATE       EXPIRYDATE      MAXDATE        \n"
)
ROW = (
    "\nQ1UP9lm5SUGazcrUvBFOpA cHJvb2Y=                       User:alice      User:admin      "
    f"[User:b, User:c]          {ISSUE} {EXPIRY} {MAX}\n"
)
HMAC = "cHJvb2Y="
CREATE = ("--create", "--max-life-time-period", "-1")


def script() -> ScriptedCluster:
    created = CreateDelegationTokenResponse(
        **WHO,  # type: ignore[arg-type]
        token_id="Q1UP9lm5SUGazcrUvBFOpA",
        hmac=b"proof",
        issue_timestamp_ms=ISSUE_MS,
        expiry_timestamp_ms=EXPIRY_MS,
        max_timestamp_ms=MAX_MS,
    )
    described = DescribedDelegationToken(
        **WHO,  # type: ignore[arg-type]
        token_id="Q1UP9lm5SUGazcrUvBFOpA",
        hmac=b"proof",
        issue_timestamp=ISSUE_MS,
        expiry_timestamp=EXPIRY_MS,
        max_timestamp=MAX_MS,
        renewers=[
            DescribedDelegationTokenRenewer(principal_type="User", principal_name=name)
            for name in "bc"
        ],
    )
    return ScriptedCluster(
        {
            ApiKey.CREATE_DELEGATION_TOKEN: created,
            ApiKey.DESCRIBE_DELEGATION_TOKEN: DescribeDelegationTokenResponse(tokens=[described]),
            ApiKey.RENEW_DELEGATION_TOKEN: RenewDelegationTokenResponse(
                expiry_timestamp_ms=EXPIRY_MS
            ),
            ApiKey.EXPIRE_DELEGATION_TOKEN: ExpireDelegationTokenResponse(error_code=62),
        }
    )


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "client.properties"
    path.write_text("client.id=x\n")
    return path


def tokens(config: Path, *words: str, cluster: ScriptedCluster | None = None) -> Outcome:
    servers = ("--bootstrap-server", "b:1", "--command-config", str(config))
    return kafkapy("delegation-tokens", *servers, *words, cluster=cluster or script())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "exactly one action: --create, --renew, --expire or --describe"),
        (["--create", "--renew"], "exactly one action: --create, --renew, --expire or --describe"),
        (["--create"], 'Missing required argument "[max-life-time-period]"'),
        (["--renew", "--hmac", HMAC], 'Missing required argument "[renew-time-period]"'),
        (["--expire", "--expiry-time-period", "1"], 'Missing required argument "[hmac]"'),
        ([*CREATE, "--hmac", HMAC], 'Option "[create]" can\'t be used with option "[hmac]"'),
        (["--describe", "--hmac", HMAC], 'Option "[describe]" can\'t be used with option "[hmac]"'),
        (
            ["--renew", "--hmac", HMAC, "--renew-time-period", "1", "--owner-principal", "User:a"],
            'Option "[renew]" can\'t be used with option "[owner-principal]"',
        ),
        ([*CREATE, "--renewer-principal", "bob"], "principalType:principalName but got bob"),
        (["--renew", "--hmac", "%%", "--renew-time-period", "1"], "--hmac %% is not base64"),
        (["--renew", "--hmac", "a", "--renew-time-period", "1"], "--hmac a is not base64"),
    ],
)
def test_wrong_words(config: Path, words: list[str], said: str) -> None:
    cluster = script()
    done = tokens(config, *words, cluster=cluster)
    assert said in done.stderr
    assert done.status == 1
    assert cluster.requests == []


def test_a_property_file_is_needed() -> None:
    done = kafkapy("delegation-tokens", "--bootstrap-server", "b:1", *CREATE, cluster=script())
    assert 'Missing required argument "[command-config]"' in done.stderr


def test_create(config: Path) -> None:
    who = ("--renewer-principal", "User:b", "--renewer-principal", "User:c")
    cluster = script()
    done = tokens(config, *CREATE, *who, "--owner-principal", "User:alice", cluster=cluster)
    assert done.stdout == (
        "Calling create token operation with renewers :[User:b, User:c] ,"
        " max-life-time-period :-1\n"
        "Created delegation token with tokenId : Q1UP9lm5SUGazcrUvBFOpA\n"
        f"\n{HEAD}{ROW}"
    )
    assert done.status == 0
    (asked,) = cluster.requests_of(ApiKey.CREATE_DELEGATION_TOKEN)
    assert asked.owner_principal_name == "alice"


@pytest.mark.parametrize(
    ("words", "whose", "owners"),
    [
        ([], "current user.", None),
        (["--owner-principal", "User:a"], "owners: [User:a]", ["a"]),
    ],
)
def test_describe(config: Path, words: list[str], whose: str, owners: Any) -> None:
    cluster = script()
    done = tokens(config, "--describe", *words, cluster=cluster)
    assert done.stdout == (
        f"Calling describe token operation for {whose}\nTotal number of tokens : 1\n{HEAD}{ROW}"
    )
    (asked,) = cluster.requests_of(ApiKey.DESCRIBE_DELEGATION_TOKEN)
    assert (asked.owners and [owner.principal_name for owner in asked.owners]) == owners


def test_describe_for_programs(config: Path) -> None:
    (token,) = tokens(config, "--describe", "--output", "json").data
    assert token == {
        "token_id": "Q1UP9lm5SUGazcrUvBFOpA",
        "hmac": HMAC,
        "owner": "User:alice",
        "requester": "User:admin",
        "renewers": ["User:b", "User:c"],
        "issue_timestamp_ms": ISSUE_MS,
        "expiry_timestamp_ms": EXPIRY_MS,
        "max_timestamp_ms": MAX_MS,
    }


@pytest.mark.parametrize("hmac", [HMAC, HMAC.rstrip("=")])
def test_renew(config: Path, hmac: str) -> None:
    done = tokens(config, "--renew", "--hmac", hmac, "--renew-time-period", "-1")
    assert done.stdout == (
        f"Calling renew token operation with hmac :{hmac} , renew-time-period :-1\n"
        f"Completed renew operation. New expiry date : {EXPIRY}\n"
    )


def test_a_refusal_is_javas_exception(config: Path) -> None:
    done = tokens(config, "--expire", "--hmac", HMAC, "--expiry-time-period", "9")
    assert done.stdout == (
        f"Calling expire token operation with hmac :{HMAC} , expire-time-period :9\n"
    )
    assert done.stderr == (
        "org.apache.kafka.common.errors.DelegationTokenNotFoundException:"
        " Delegation Token is not found on server.\n"
    )
    assert done.status == 1
