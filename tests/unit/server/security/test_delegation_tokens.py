"""Delegation tokens that a broker knows, and the SCRAM credentials made of them."""

from __future__ import annotations

import base64

import pytest

from kafkapy.security.delegation_tokens import TokenInformation
from kafkapy.security.sasl.client import conversation
from kafkapy.security.sasl.jaas import Credentials
from kafkapy.security.sasl.scram import MECHANISMS
from kafkapy.security.sasl.server import ScramServer
from kafkapy.server.security.delegation_tokens import DelegationTokens
from kafkapy.server.security.scram_credentials import ScramCredentials
from tests.harness.cores.ports import NOW_MS, ManualClock

TOKEN = TokenInformation("id", "User:a:b", "User:r", (), NOW_MS, NOW_MS + 100, NOW_MS + 50)


def known(*tokens: TokenInformation, clock: ManualClock | None = None) -> DelegationTokens:
    made = DelegationTokens(b"secret", clock or ManualClock())
    for token in tokens:
        made.put(token)
    return made


def test_without_a_secret_there_are_none() -> None:
    assert not DelegationTokens(b"", ManualClock()).are_enabled
    assert known().are_enabled


def test_they_are_found_by_id_and_by_hmac() -> None:
    tokens = known(TOKEN)
    hmac = tokens.hmac("id")
    assert tokens.id_of(hmac) == "id"
    assert tokens.get("id") == TOKEN
    later = TOKEN._replace(expiry_ms=NOW_MS + 90)
    tokens.put(later)
    assert list(tokens.all()) == [later]
    tokens.remove("id")
    tokens.remove("id")
    assert tokens.id_of(hmac) is None
    assert tokens.get("id") is None
    assert list(tokens.all()) == []


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_hmac_is_the_password_of_the_owner(mechanism: str) -> None:
    clock = ManualClock()
    tokens = known(TOKEN, clock=clock)
    clock.now_ms += 20
    credentials = ScramCredentials(tokens)
    server = ScramServer(
        MECHANISMS[mechanism],
        credentials.lookup_for(mechanism),
        "n",
        credentials.token_lookup_for(mechanism),
    )
    password = base64.b64encode(tokens.hmac("id")).decode()
    client = conversation(mechanism, Credentials("id", password, is_token=True), "c")
    with pytest.raises(StopIteration):
        client.send(server.evaluate(client.send(server.evaluate(next(client)))))
    assert (server.username, server.lifetime_ms) == ("a:b", 30)


def test_a_credential_is_made_once_and_goes_with_its_token() -> None:
    tokens = known(TOKEN)
    find = tokens.lookup_for("SCRAM-SHA-256")
    first, again = find("id"), find("id")
    assert first is not None
    assert again is not None
    assert first.credential is again.credential
    tokens.remove("id")
    assert find("id") is None
    tokens.put(TOKEN)
    anew = find("id")
    assert anew is not None
    assert anew.credential is not first.credential
    assert anew.credential == first.credential


def test_without_tokens_nobody_logs_in_by_one() -> None:
    assert ScramCredentials().token_lookup_for("SCRAM-SHA-256")("id") is None
