"""DIGEST-MD5: the RFC's example, kazoo's own client half, and everything that is not a proof."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from puresasl.client import SASLClient

from kafkapy.security.sasl.digest_md5 import (
    TOKEN_MAX_BYTES,
    URI,
    DigestMd5Server,
    LoginRefused,
    response_value,
)

USERS = {"kafka": "secret", "käse": "pässword"}
NONCE = b"0123456789abcdef"


def client(user: str, password: str) -> SASLClient:
    words = {"service": "zookeeper", "mechanism": "DIGEST-MD5"}
    return SASLClient("zk-sasl-md5", username=user, password=password, **words)


def challenged() -> tuple[DigestMd5Server, bytes]:
    server = DigestMd5Server(USERS, NONCE)
    return server, server.evaluate(b"")


def test_the_example_of_the_rfc() -> None:
    fields = {
        "username": "chris",
        "realm": "elwood.innosoft.com",
        "nonce": "OA6MG9tEQGm2hh",
        "nc": "00000001",
        "cnonce": "OA6MHXh6VqTrRk",
        "digest-uri": "imap/elwood.innosoft.com",
        "qop": "auth",
    }
    response = response_value("AUTHENTICATE", "secret", fields)
    assert response == "d388dad90d4bbd760a152321f2143af7"
    assert response_value("", "secret", fields) == "ea40f60335c427b5527b84dbabcdfffd"


def test_kazoos_client_logs_in_and_believes_the_server() -> None:
    server, challenge = challenged()
    kazoo = client("kafka", "secret")
    assert kazoo.process() is None
    proof = server.evaluate(kazoo.process(challenge))
    assert proof.startswith(b"rspauth=")
    assert server.user == "kafka"
    assert kazoo.process(proof) is None
    assert kazoo.complete
    with pytest.raises(LoginRefused, match="over already"):
        server.evaluate(b"")


@pytest.mark.parametrize(("user", "password"), [("kafka", "wrong"), ("else", "secret"), ("x", "")])
def test_a_wrong_user_or_password(user: str, password: str) -> None:
    server, challenge = challenged()
    with pytest.raises(LoginRefused, match=f"wrong user or password: {user}"):
        server.evaluate(client(user, password).process(challenge))
    assert server.user is None


def response(**changed: str) -> bytes:
    """The response of Java's client, which names the user that it wants to be as well."""
    fields = {
        "charset": "utf-8",
        "username": "kafka",
        "realm": "zk-sasl-md5",
        "nonce": NONCE.hex(),
        "nc": "00000001",
        "cnonce": 'a"b\\',
        "digest-uri": URI,
        "maxbuf": "65536",
        "qop": "auth",
        "authzid": "kafka",
        **{name.replace("_", "-"): value for name, value in changed.items()},
    }
    if "response" not in fields:
        fields["response"] = response_value("AUTHENTICATE", "secret", fields)
    quoted = {name: re.sub(r'(["\\])', r"\\\1", value) for name, value in fields.items()}
    return ", ".join(f'{name}="{value}"' for name, value in quoted.items()).encode()


def test_javas_client() -> None:
    server, _ = challenged()
    assert server.evaluate(response()).startswith(b"rspauth=")
    assert server.user == "kafka"


def test_names_that_latin_1_has_are_hashed_in_it() -> None:
    fields = {"username": "käse", "realm": "r", "nonce": "n", "cnonce": "c"}
    assert response_value("", "p", fields) != response_value("", "p", {**fields, "username": "k"})
    server, _ = challenged()
    names = {"username": "käse", "authzid": "käse"}
    proof = {
        "realm": "zk-sasl-md5",
        "nonce": NONCE.hex(),
        "nc": "00000001",
        "cnonce": 'a"b\\',
        "digest-uri": URI,
        "qop": "auth",
        **names,
    }
    sent = response(**names, response=response_value("AUTHENTICATE", "pässword", proof))
    server.evaluate(sent)
    assert server.user == "käse"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"nonce": "00"}, "another nonce"),
        ({"nc": "00000002"}, "another nc"),
        ({"realm": "other"}, "another realm"),
        ({"qop": "auth-conf"}, "another qop"),
        ({"digest_uri": "imap/host"}, "is for imap/host"),
        ({"authzid": "admin"}, "kafka asks to act as admin"),
        ({"response": ""}, "wrong user or password"),
        ({"response": "ü"}, "wrong user or password"),
    ],
)
def test_another_conversation_proves_nothing(changed: dict[str, str], said: str) -> None:
    server, _ = challenged()
    with pytest.raises(LoginRefused, match=said):
        server.evaluate(response(**changed))
    assert server.user is None


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"=",
        b"username",
        b'username="kafka',
        b"nc=1,nc=1",
        b'a="b"c',
        b"a=b," * TOKEN_MAX_BYTES,
    ],
)
def test_malformed_responses(token: bytes) -> None:
    server, _ = challenged()
    with pytest.raises(LoginRefused, match="malformed"):
        server.evaluate(token)


def test_a_token_before_the_challenge() -> None:
    with pytest.raises(LoginRefused, match="initial response"):
        DigestMd5Server(USERS, NONCE).evaluate(response())


@given(st.binary(max_size=200))
def test_no_other_bytes_log_in(token: bytes) -> None:
    server, _ = challenged()
    with pytest.raises(LoginRefused):
        server.evaluate(token)
    assert server.user is None
