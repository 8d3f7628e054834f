"""The broker's half of SASL: RFC 7677's example, our own client, and every refusal."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkapy.security.sasl.client import conversation
from kafkapy.security.sasl.jaas import Credentials
from kafkapy.security.sasl.scram import MECHANISMS, ScramCredential, ScramMechanism
from kafkapy.security.sasl.server import (
    PlainServer,
    Refused,
    RefusedSilently,
    ScramServer,
    TokenCredential,
)

USERS = {"alice": "secret", "bob": "other"}
NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SALT = bytes.fromhex("5b6d99689d12358eeca04b141236fa81")


def credential(
    name: str, password: str = "pencil", iterations: int = 4096, mechanism: str = "SCRAM-SHA-256"
) -> Callable[[str], ScramCredential | None]:
    """Returns the credential lookup of a broker that has one user."""
    scram = MECHANISMS[mechanism]
    salted = scram.salted_password(password, SALT, iterations)
    known = {name: ScramCredential.of(scram, SALT, salted, iterations)}
    return known.get


def scram_server(
    credential_of: Callable[[str], ScramCredential | None], mechanism: str = "SCRAM-SHA-256"
) -> ScramServer:
    return ScramServer(MECHANISMS[mechanism], credential_of, NONCE)


@pytest.mark.parametrize("token", [b"\0alice\0secret", b"alice\0alice\0secret"])
def test_plain(token: bytes) -> None:
    server = PlainServer(USERS)
    assert server.evaluate(token) == b""
    assert server.username == "alice"


@pytest.mark.parametrize(
    ("token", "kind", "said"),
    [
        (b"\0alice\0wrong", Refused, "Authentication failed: Invalid username or password"),
        (b"\0nobody\0secret", Refused, "Authentication failed: Invalid username or password"),
        (b"\0\0secret", Refused, "Authentication failed: username not specified"),
        (b"\0alice\0", Refused, "Authentication failed: password not specified"),
        (b"bob\0alice\0secret", Refused, "authorization id that is different from username"),
        (b"alice\0secret", RefusedSilently, "expected 3 tokens, got 2"),
        (b"\0a\0b\0c", RefusedSilently, "expected 3 tokens, got 4"),
    ],
)
def test_plain_refuses(token: bytes, kind: type[Exception], said: str) -> None:
    server = PlainServer(USERS)
    with pytest.raises(kind, match=said):
        server.evaluate(token)
    assert server.username is None


def test_scram_says_what_the_rfc_says() -> None:
    server = scram_server(credential("user"))
    assert server.evaluate(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO") == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    assert server.username is None
    final = (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert server.evaluate(final) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert server.username == "user"


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("name", ["alice", "a=b,c", "Ärger"])
def test_scram_with_our_own_client(mechanism: str, name: str) -> None:
    server = scram_server(credential(name, mechanism=mechanism), mechanism)
    client = conversation(mechanism, Credentials(name, "pencil"), "nonce")
    challenge = server.evaluate(next(client))
    with pytest.raises(StopIteration):
        client.send(server.evaluate(client.send(challenge)))
    assert server.username == name


@pytest.mark.parametrize(
    ("token", "kind", "said"),
    [
        (b"n,,n=nobody,r=x", RefusedSilently, "Invalid user credentials"),
        (b"n,a=bob,n=user,r=x", Refused, "different from username"),
        (b"p=tls-unique,,n=user,r=x", RefusedSilently, "client first message format"),
        (b"n,,n=a=b,r=x", RefusedSilently, "escaped"),
        (b"\xff", RefusedSilently, "Invalid SCRAM message"),
        (b"", RefusedSilently, "client first message format"),
    ],
)
def test_scram_refuses_the_first_message(token: bytes, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        scram_server(credential("user")).evaluate(token)


@pytest.mark.parametrize(
    ("final", "said"),
    [
        (b"c=biws,r=x" + NONCE.encode() + b",p=AAAA", "Invalid client credentials"),
        (b"c=biws,r=other,p=AAAA", "Invalid client nonce"),
        (b"c=AAAA,r=x" + NONCE.encode() + b",p=AAAA", "Invalid channel binding"),
        (b"c=biws,r=x" + NONCE.encode() + b",p=!", "Invalid SCRAM message"),
        (b"c=biws", "client final message format"),
    ],
)
def test_scram_refuses_the_final_message(final: bytes, said: str) -> None:
    server = scram_server(credential("user"))
    server.evaluate(b"n,,n=user,r=x")
    with pytest.raises(RefusedSilently, match=said):
        server.evaluate(final)
    assert server.username is None


def test_a_wrong_password_proves_nothing() -> None:
    server = scram_server(credential("user"))
    client = conversation("SCRAM-SHA-256", Credentials("user", "wrong"), "nonce")
    proof = client.send(server.evaluate(next(client)))
    with pytest.raises(RefusedSilently, match="Invalid client credentials"):
        server.evaluate(proof)


def test_a_credential_with_few_iterations_is_not_served() -> None:
    with pytest.raises(RefusedSilently, match="Iterations 100 is less than the minimum 4096"):
        scram_server(credential("user", iterations=100)).evaluate(b"n,,n=user,r=x")


def test_extensions_of_the_first_message_are_ignored() -> None:
    server = ScramServer(ScramMechanism.SCRAM_SHA_256, credential("user"), "s")
    assert server.evaluate(b"n,,n=user,r=x,other=true").startswith(b"r=xs,")


def token_server(lifetime_ms: int = 5) -> ScramServer:
    """Knows the user `user` and alice's token `id`, both with the same password."""
    known = credential("id")("id")
    assert known is not None
    tokens = {"id": TokenCredential("alice", known, lifetime_ms)}
    mechanism = ScramMechanism.SCRAM_SHA_256
    return ScramServer(mechanism, credential("user"), NONCE, tokens.get)


def test_a_token_logs_its_owner_in() -> None:
    server = token_server()
    client = conversation("SCRAM-SHA-256", Credentials("id", "pencil", is_token=True), "nonce")
    with pytest.raises(StopIteration):
        client.send(server.evaluate(client.send(server.evaluate(next(client)))))
    assert (server.username, server.lifetime_ms) == ("alice", 5)


@pytest.mark.parametrize("said", [b"tokenauth=TRUE", b"other=x,tokenauth=true"])
def test_that_it_is_a_token_is_an_extension(said: bytes) -> None:
    assert token_server().evaluate(b"n,,n=id,r=x," + said).startswith(b"r=x")


@pytest.mark.parametrize(
    ("first", "lifetime_ms", "said"),
    [
        (b"n,,n=user,r=x,tokenauth=true", 5, "Invalid tokenId : user"),
        (b"n,,n=id,r=x", 5, "Invalid user credentials"),
        (b"n,,n=id,r=x,tokenauth=false", 5, "Invalid user credentials"),
        (b"n,,n=id,r=x,xtokenauth=true", 5, "Invalid user credentials"),
        (b"n,,n=id,r=x,tokenauth=true", 0, "tokenId : id has expired"),
        (b"n,,n=id,r=x,tokenauth=true", -1, "tokenId : id has expired"),
    ],
)
def test_users_are_no_tokens_nor_tokens_users(first: bytes, lifetime_ms: int, said: str) -> None:
    server = token_server(lifetime_ms)
    with pytest.raises(RefusedSilently, match=said):
        server.evaluate(first)
    assert server.lifetime_ms is None


def test_a_token_acts_for_nobody_but_its_owner() -> None:
    with pytest.raises(Refused, match="different from username"):
        token_server().evaluate(b"n,a=alice,n=id,r=x,tokenauth=true")
