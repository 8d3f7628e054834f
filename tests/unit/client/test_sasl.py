"""SASL on a connection: what is sent before the first request, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkapy.client import sasl
from kafkapy.client.cluster import Cluster
from kafkapy.client.oauth_login import TOKENS
from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeResponse
from kafkapy.security.kerberos import gss_library
from kafkapy.security.kerberos.gss_context import CHOICE, OFFER, GssContext
from kafkapy.security.kerberos.login import KerberosLogin
from kafkapy.security.oauth.tokens import unsecured_token
from tests.harness.scripted.scripted_broker import ScriptedCluster, metadata
from tests.harness.security.kerberos_realm import cache_line, client
from tests.harness.security.oauth_broker import unsecured_client
from tests.harness.security.scripted_gss import ScriptedContext


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
    assert scripted.requests_of(ApiKey.SASL_AUTHENTICATE)[0].auth_bytes == b"\0u\0p"


def test_a_session_is_renewed_on_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sasl, "_RENEW_AT", 0.0)
    ends = SaslAuthenticateResponse(session_lifetime_ms=60_000)
    cluster, scripted = cluster_on(
        {
            ApiKey.SASL_HANDSHAKE: SaslHandshakeResponse(mechanisms=["PLAIN"]),
            ApiKey.SASL_AUTHENTICATE: [ends, SaslAuthenticateResponse()],
        }
    )
    for _ in range(3):
        cluster.metadata([], refresh=True)
    assert len(scripted.connections) == 1
    assert len(scripted.requests_of(ApiKey.SASL_HANDSHAKE)) == 2
    assert [request.API_KEY for _, request, _ in scripted.requests[3:]] == [
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.METADATA,
        ApiKey.METADATA,
        ApiKey.METADATA,
    ]


@pytest.mark.parametrize("refused", [False, True])
def test_a_bearer_token(refused: bool) -> None:
    told = b'{"status":"invalid_token"}'
    refusal = SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=told.decode()
    )
    scripted = ScriptedCluster(
        {
            ApiKey.METADATA: metadata(),
            ApiKey.SASL_HANDSHAKE: SaslHandshakeResponse(mechanisms=["OAUTHBEARER"]),
            ApiKey.SASL_AUTHENTICATE: [SaslAuthenticateResponse(auth_bytes=told), refusal]
            if refused
            else SaslAuthenticateResponse(),
        }
    )
    cluster = Cluster("b:1", unsecured_client("bob"), connector=scripted.connect)
    if refused:
        with pytest.raises(ApiError, match="invalid_token"):
            cluster.metadata([])
        assert scripted.requests_of(ApiKey.SASL_AUTHENTICATE)[1].auth_bytes == b"\x01"
    else:
        cluster.metadata([])
    said = bytes(scripted.requests_of(ApiKey.SASL_AUTHENTICATE)[0].auth_bytes).decode()
    token, _ = unsecured_token(said.split()[1].rstrip("\x01"), "sub", "scope")
    assert token.principal == "bob"


class Tickets:
    """Kerberos's library, as a client uses it."""

    def __init__(self, login: KerberosLogin) -> None:
        self._service = login.service

    def begin(self, host: str) -> GssContext:
        return ScriptedContext((b"", f"AP-REQ {self._service}/{host}".encode()), (b"AP-REP", b""))


def test_kerberos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gss_library, "Initiator", Tickets)
    says = [b"AP-REP", b"wrapped " + OFFER, b""]
    scripted = ScriptedCluster(
        {
            ApiKey.METADATA: metadata(),
            ApiKey.SASL_HANDSHAKE: SaslHandshakeResponse(mechanisms=["GSSAPI"]),
            ApiKey.SASL_AUTHENTICATE: [SaslAuthenticateResponse(auth_bytes=each) for each in says],
        }
    )
    properties = client(cache_line(Path("/tickets")))
    Cluster("b:1", properties, connector=scripted.connect).metadata([])
    said = [bytes(request.auth_bytes) for request in scripted.requests_of(ApiKey.SASL_AUTHENTICATE)]
    assert said == [b"AP-REQ kafka/b", b"", b"wrapped " + CHOICE]


def test_kerberos_is_the_default_and_says_what_it_needs() -> None:
    properties = {"security.protocol": "SASL_PLAINTEXT", "sasl.jaas.config": "PlainLoginModule"}
    scripted = ScriptedCluster({ApiKey.METADATA: metadata()})
    with pytest.raises(ConfigError, match="must be a line of Krb5LoginModule for GSSAPI"):
        Cluster("b:1", properties, connector=scripted.connect).metadata([])


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


def test_ctrl_c_while_a_token_is_fetched_leaves_no_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(properties: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(TOKENS, "get", interrupt)
    scripted = ScriptedCluster({ApiKey.METADATA: metadata()})
    cluster = Cluster("b:1", unsecured_client("bob"), connector=scripted.connect)
    with pytest.raises(KeyboardInterrupt):
        cluster.metadata([])
    assert [connection.closed for connection in scripted.connections] == [True]
