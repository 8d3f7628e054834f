"""Brokers, ours and Apache Kafka's, with a listener for Kerberos clients; and a client that can
send any login message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkapy.security.kerberos.gss_context import GssContext
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import BrokerProcess, free_port
from tests.harness.processes.raw_connection import RawConnection
from tests.harness.security.guarded_broker import AUTHORIZER
from tests.harness.security.kerberos_realm import NAME, SERVICE, line

RULES: Final = f"RULE:[1:$1@$0](clerk-.*@{NAME})s/clerk-(.*)@.*/$1/U,RULE:[2:$1-$2],DEFAULT"
_LISTENER: Final = "KERBEROS"
_JAAS: Final = "listener.name.kerberos.gssapi.sasl.jaas.config"


def _settings(keytab: Path) -> dict[str, str]:
    return {
        "sasl.enabled.mechanisms": "GSSAPI",
        _JAAS: line(keytab, SERVICE),
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal.to.local.rules": RULES,
        "connection.failed.authentication.delay.ms": "10",
    }


class KerberosBroker(BrokerProcess):
    """A kafkapy broker with an authorizer. `servers` is the address for Kerberos clients."""

    def __init__(
        self, log_dir: Path, keytab: Path, overrides: Mapping[str, str] | None = None
    ) -> None:
        port, at, self.metrics_port = free_port(), free_port(), free_port()
        super().__init__(
            log_dir,
            {
                **_settings(keytab),
                "listeners": f"PLAINTEXT://127.0.0.1:{port},{_LISTENER}://127.0.0.1:{at}",
                "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},"
                f"{_LISTENER}://localhost:{at}",
                "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,{_LISTENER}:SASL_PLAINTEXT",
                "authorizer.class.name": AUTHORIZER,
                "super.users": "User:alice;User:ANONYMOUS",
                "kafkapy.metrics.port": str(self.metrics_port),
                **(overrides or {}),
            },
        )
        self.port = port
        self.bootstrap_servers = f"127.0.0.1:{port}"
        self.servers = f"localhost:{at}"


class ApacheKerberosBroker(apache_kafka.ApacheBroker):
    """A broker of Apache Kafka 3.9 with the same settings, without an authorizer."""

    def __init__(self, log_dir: Path, keytab: Path) -> None:
        super().__init__(log_dir)
        at = free_port()
        plain = self.bootstrap_servers
        self.properties |= _settings(keytab) | {
            "listeners": f"{self.properties['listeners']},{_LISTENER}://127.0.0.1:{at}",
            "advertised.listeners": f"PLAINTEXT://{plain},{_LISTENER}://localhost:{at}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
            f"{_LISTENER}:SASL_PLAINTEXT",
        }
        apache_kafka.write_properties(self.config, self.properties)
        self.servers = f"localhost:{at}"


class Answer(NamedTuple):
    """A broker's response to one message of a login, without its bytes, which vary."""

    error_code: int
    error_message: str | None
    has_bytes: bool
    session_ms: int


Outcome = tuple[Answer | None, ...]
"""The responses; None where the connection was closed instead."""

SendMessage = Callable[[bytes], bytes]
"""Sends a message, and returns the response."""


class Login:
    """A login at a broker, in SaslAuthenticate requests. `answers` are those so far."""

    def __init__(self, servers: str, mechanism: str = "GSSAPI") -> None:
        self.answers: list[Answer | None] = []
        self._connection = RawConnection(servers)
        handshake = SaslHandshakeRequest(mechanism=mechanism)
        self.handshake_response = self._connection.request(handshake, 1, SaslHandshakeResponse)

    def send(self, message: bytes) -> bytes:
        """Send a message. Returns the answer's bytes, empty if the login is over."""
        found = self._connection.authenticate(message)
        if found is None:
            self.answers.append(None)
            return b""
        answer = bytes(found.auth_bytes)
        self.answers.append(
            Answer(found.error_code, found.error_message, bool(answer), found.session_lifetime_ms)
        )
        return answer

    def close(self) -> Outcome:
        """Close the connection. Returns the answers."""
        self._connection.close()
        return tuple(self.answers)


def establish(context: GssContext, send: SendMessage) -> bytes:
    """Do the exchange of Kerberos tokens. Returns the broker's offer, as it was sent."""
    response = send(context.step(b""))
    while not context.is_established:
        response = send(context.step(response))
    return response
