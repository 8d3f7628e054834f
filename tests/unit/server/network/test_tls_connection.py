"""The user of a TLS connection is who its certificate names."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.protocol.framing import ReceiveBuffers
from kafkapy.protocol.server_connection import ServerConnection
from kafkapy.security.tls.distinguished_name import PrincipalMapper
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.network.connection_table import ConnectionTable
from kafkapy.server.network.tls_connection import TlsConnection
from kafkapy.server.requests.outcomes import ANONYMOUS
from tests.harness.scripted.transports import FakeTransport
from tests.harness.security.certificates import can_make, make_identity


class TlsTransport(FakeTransport):
    """A transport whose peer showed this certificate."""

    def __init__(self, certificate: bytes | None) -> None:
        super().__init__()
        self.certificate = certificate

    def get_extra_info(self, name: str) -> Any:
        if name == "ssl_object":
            return SimpleNamespace(getpeercert=lambda binary_form: self.certificate)
        return super().get_extra_info(name)


def connected(
    transport: TlsTransport, rules: str = "DEFAULT", table: ConnectionTable | None = None
) -> TlsConnection:
    dispatcher: Any = None
    connection = TlsConnection(
        "SSL",
        dispatcher,
        ConnectionTable(KafkaConfig({})) if table is None else table,
        ServerConnection(1000, ReceiveBuffers(4096)),
        lambda: 0,
        PrincipalMapper(rules),
    )
    connection.connection_made(transport)
    return connection


def test_who_shows_none_is_anonymous() -> None:
    table = ConnectionTable(KafkaConfig({}))
    assert connected(TlsTransport(None), table=table).principal == ANONYMOUS
    assert table.logins.succeeded == {("SSL", "SSL"): 1}


def test_who_shows_one_has_its_name(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    if not can_make("users named by certificates"):
        return
    caplog.set_level(logging.INFO)
    certificate = make_identity(tmp_path, "alice").with_suffix(".crt").read_text()
    der = ssl.PEM_cert_to_DER_cert(certificate)
    table = ConnectionTable(KafkaConfig({}))
    assert connected(TlsTransport(der), table=table).principal == "User:CN=alice"
    assert connected(TlsTransport(der), "RULE:CN=(.*)/$1/", table).principal == "User:alice"
    unnamed = TlsTransport(der)
    assert connected(unnamed, "RULE:CN=bob/b/", table).principal == ANONYMOUS
    assert unnamed.closing
    assert table.logins.succeeded == {("SSL", "SSL"): 2}
    assert table.logins.failed == {("SSL", "SSL"): 1}
    assert "no rule of ssl.principal.mapping.rules applies to CN=alice" in caplog.text
