"""The broker's half of OAUTHBEARER: messages in, what is answered out."""

from __future__ import annotations

import pytest

from kafkapy.security.oauth.client import first_message, oauth_conversation
from kafkapy.security.oauth.server import OAuthBearerServer
from kafkapy.security.oauth.tokens import INSUFFICIENT_SCOPE, BearerToken, IllegalToken
from kafkapy.security.sasl.server import Refused, RefusedSilently

NOW_MS = 1_700_000_000_000
GOOD = BearerToken("a.b-_~+/.c==", "alice", NOW_MS + 5000)


def validate(value: str) -> BearerToken:
    if value == GOOD.value:
        return GOOD
    if value == "late":
        return BearerToken(value, "alice", NOW_MS - 5000)
    if value == "narrow":
        raise IllegalToken("reason", INSUFFICIENT_SCOPE, '["a"]')
    raise IllegalToken("for the log alone")


def server() -> OAuthBearerServer:
    return OAuthBearerServer(validate, lambda: NOW_MS)


def message(auth: str = f"Bearer {GOOD.value}", header: str = "n,,", more: str = "") -> bytes:
    return f"{header}\x01auth={auth}{more}\x01\x01".encode()


@pytest.mark.parametrize(
    "token",
    [
        first_message(GOOD),
        first_message(GOOD._replace(extensions=(("traceId", "1 2"), ("x", "=")))),
        message(header="n,a=alice,"),
        message(auth=f"bearer   {GOOD.value}"),
    ],
)
def test_a_token_that_is_taken(token: bytes) -> None:
    one = server()
    assert (one.username, one.lifetime_ms) == (None, None)
    assert one.evaluate(token) == b""
    assert (one.username, one.lifetime_ms) == ("alice", 5000)


def test_a_token_that_is_over_already_gives_no_time() -> None:
    one = server()
    assert one.evaluate(message("Bearer late")) == b""
    assert one.lifetime_ms == 0


@pytest.mark.parametrize(
    ("token", "told"),
    [
        ("bad", '{"status":"invalid_token"}'),
        ("narrow", '{"status":"insufficient_scope", "scope":"[\\"a\\"]"}'),
    ],
)
def test_a_refusal_is_told_and_then_fails_the_login(token: str, told: str) -> None:
    one = server()
    assert one.evaluate(message(f"Bearer {token}")) == told.encode()
    assert one.username is None
    with pytest.raises(Refused) as refused:
        one.evaluate(b"\x01")
    assert str(refused.value) == told


def test_another_token_after_a_refusal() -> None:
    one = server()
    assert one.evaluate(message("Bearer bad"))
    assert one.evaluate(first_message(GOOD)) == b""
    assert one.username == "alice"


def test_a_client_without_a_login_cannot_fill_the_log_with_refused_tokens() -> None:
    """The login went on: 5,000 tokens on one connection were 5,000 warnings."""
    one = server()
    assert one.evaluate(message("Bearer bad"))
    with pytest.raises(Refused) as refused:
        one.evaluate(message("Bearer narrow"))
    assert str(refused.value) == '{"status":"insufficient_scope", "scope":"[\\"a\\"]"}'


def test_an_authorization_id_that_is_anothers() -> None:
    with pytest.raises(Refused) as refused:
        server().evaluate(message(header="n,a=bob,"))
    assert str(refused.value) == (
        "Authentication failed: Client requested an authorization id (bob) that is different from"
        " the token's principal name (alice)"
    )


@pytest.mark.parametrize(
    ("token", "said"),
    [
        (b"", "Invalid OAUTHBEARER client first message"),
        (b"\x01", "Invalid OAUTHBEARER client first message"),
        (b"\xff\xfe", "Invalid OAUTHBEARER client first message"),
        (b"\0alice\0secret", "Invalid OAUTHBEARER client first message"),
        (message()[:-1], "Invalid OAUTHBEARER client first message"),
        (message(header="y,,"), "Invalid OAUTHBEARER client first message"),
        (message(header="p=tls-unique,,"), "Invalid OAUTHBEARER client first message"),
        (message(header="n,a=a=b,"), "Invalid OAUTHBEARER client first message"),
        (message(more="\x01trace_id=1"), "Invalid OAUTHBEARER client first message"),
        (message(more="\x01x="), "Invalid OAUTHBEARER client first message"),
        (b"n,,\x01x=y\x01\x01", "'auth' not specified"),
        (message("Bearer"), "invalid 'auth' format"),
        (message("Bearer a b"), "invalid 'auth' format"),
        (message("Basic abc"), "Invalid scheme in OAUTHBEARER client first message: Basic"),
    ],
)
def test_what_is_no_first_message(token: bytes, said: str) -> None:
    with pytest.raises(RefusedSilently, match=said):
        server().evaluate(token)


def test_both_halves_talk_to_each_other() -> None:
    one, talk = server(), oauth_conversation(GOOD)
    assert one.evaluate(next(talk)) == b""
    with pytest.raises(StopIteration):
        talk.send(b"")
