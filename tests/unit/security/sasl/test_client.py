"""The client's half of SASL: SCRAM by RFC 7677's example, and brokers that prove nothing."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.security.sasl.client import conversation
from kafkapy.security.sasl.jaas import Credentials

RFC_7677: Any = {
    "nonce": "rOprNGfwEbeRWgbNEkqO",
    "server_first": b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    "client_final": b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    "server_final": b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
}
USER = Credentials("user", "pencil")


def scram() -> Any:
    return conversation("SCRAM-SHA-256", USER, RFC_7677["nonce"])


def test_scram_says_what_the_rfc_says() -> None:
    talk = scram()
    assert next(talk) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert talk.send(RFC_7677["server_first"]) == RFC_7677["client_final"]
    with pytest.raises(StopIteration):
        talk.send(RFC_7677["server_final"])


@pytest.mark.parametrize(
    ("first", "final", "said"),
    [
        (b"r=other,s=AAAA,i=4096", b"", "nonce"),
        (b"e=unknown-user", b"", "not SCRAM"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=AAAAA,i=4096", b"", "not SCRAM"),
        (b"\xff", b"", "not SCRAM"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=AAAA,i=0", b"", "0 iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=AAAA,i=4095", b"", "4095 iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=AAAA,i=99999999", b"", "99999999 iterations"),
        (b"r=rOprNGfwEbeRWgbNEkqOx,s=AAAA,i=" + b"9" * 5000, b"", "not SCRAM"),
        (RFC_7677["server_first"], b"v=AAAA", "does not know the password"),
    ],
)
def test_a_broker_that_cannot_prove_itself(first: bytes, final: bytes, said: str) -> None:
    talk = scram()
    next(talk)
    with pytest.raises(ApiError, match=said) as caught:  # noqa: PT012
        talk.send(first)
        talk.send(final)
    assert caught.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED


def test_names_are_escaped() -> None:
    first = next(conversation("SCRAM-SHA-512", Credentials("a=b,c", "p"), "n"))
    assert first == b"n,,n=a=3Db=2Cc,r=n"


def test_an_unknown_mechanism_is_named() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value DIGEST-MD5 .*PLAIN, SCRAM-SHA-256"):
        conversation("DIGEST-MD5", USER, "n")


def test_plain_is_one_token() -> None:
    talk = conversation("PLAIN", USER, "n")
    assert next(talk) == b"\0user\0pencil"
    with pytest.raises(StopIteration):
        talk.send(b"")


def test_a_delegation_token_says_so() -> None:
    token = Credentials("id", "hmac", is_token=True)
    assert next(conversation("SCRAM-SHA-256", token, "n")) == b"n,,n=id,r=n,tokenauth=true"
