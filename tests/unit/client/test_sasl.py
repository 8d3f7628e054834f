"""SASL on a connection: what is sent before the first request, and refusals."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeResponse
from tests.support.scripted_broker import ScriptedCluster, metadata


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
