"""SASL: PLAIN, SCRAM by RFC 7677's example, and refusals."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.client.cluster import Cluster
from kafkapy.client.sasl import conversation
from kafkapy.client.security import Credentials
from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeResponse
from tests.support.scripted_broker import ScriptedCluster, metadata

RFC_7677 = {
    "nonce": "rOprNGfwEbeRWgbNEkqO",
    "server_first": b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    "client_final": b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    "server_final": b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
}
USER = Credentials("user", "pencil")


def scram() -> Any:
    return conversation("SCRAM-SHA-256", USER, RFC_7677["nonce"])  # type: ignore[arg-type]


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
    with pytest.raises(ConfigError, match=r"Invalid value GSSAPI .*PLAIN, SCRAM-SHA-256"):
        conversation("GSSAPI", USER)


def cluster_on(script: dict[ApiKey, Any]) -> tuple[Cluster, ScriptedCluster]:
    scripted = ScriptedCluster({ApiKey.METADATA: metadata(), **script})
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": 'x required username="u" password="p";',
    }
    return Cluster("b:1", properties, connector=scripted.connect), scripted


def test_plain_comes_before_every_other_request() -> None:
    cluster, scripted = cluster_on(
        {
            ApiKey.SASL_HANDSHAKE: SaslHandshakeResponse(mechanisms=["PLAIN"]),
            ApiKey.SASL_AUTHENTICATE: SaslAuthenticateResponse(auth_bytes=b""),
        }
    )
    cluster.metadata([])
    keys = [request.API_KEY for _, request, _ in scripted.requests]
    assert keys == [
        ApiKey.API_VERSIONS,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.METADATA,
    ]
    assert scripted.asked(ApiKey.SASL_AUTHENTICATE)[0].auth_bytes == b"\0u\0p"


def test_a_mechanism_that_is_not_offered() -> None:
    refusal = SaslHandshakeResponse(
        error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=["GSSAPI", "OTHER"]
    )
    cluster, scripted = cluster_on({ApiKey.SASL_HANDSHAKE: refusal})
    with pytest.raises(ApiError, match=r"does not offer SASL mechanism PLAIN.*GSSAPI, OTHER"):
        cluster.metadata([])
    assert scripted.connections[0].closed


def test_wrong_credentials_have_the_brokers_words() -> None:
    refusal = SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="Invalid username"
    )
    cluster, scripted = cluster_on(
        {
            ApiKey.SASL_HANDSHAKE: SaslHandshakeResponse(mechanisms=["PLAIN"]),
            ApiKey.SASL_AUTHENTICATE: refusal,
        }
    )
    with pytest.raises(ApiError, match="Invalid username"):
        cluster.metadata([])
    assert scripted.connections[0].closed
