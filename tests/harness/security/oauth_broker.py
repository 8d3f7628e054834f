"""Brokers, ours and Apache Kafka's, with two listeners for bearer tokens: UNSECURED and SIGNED."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkapy.security.oauth.login import MODULE
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import BrokerProcess, free_port
from tests.harness.processes.raw_connection import RawConnection
from tests.harness.security.token_issuer import AUDIENCE, CLIENT_ID, CLIENT_SECRET, ISSUER, Issuer

PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
LOGIN_HANDLER: Final = f"{PACKAGE}.secured.OAuthBearerLoginCallbackHandler"
VALIDATOR: Final = f"{PACKAGE}.secured.OAuthBearerValidatorCallbackHandler"
LISTENERS: Final = ("UNSECURED", "SIGNED")


class _Settings(NamedTuple):
    """Ports and properties of a broker's listeners for bearer tokens."""

    ports: Mapping[str, int]
    properties: dict[str, str]


def _settings(issuer: Issuer) -> _Settings:
    ports = {name: free_port() for name in LISTENERS}
    unsecured = "listener.name.unsecured.oauthbearer.sasl"
    signed = "listener.name.signed.oauthbearer.sasl"
    properties = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        # Apache Kafka's broker also logs in itself, whatever its clients are.
        f"{unsecured}.jaas.config": f'{MODULE} required unsecuredLoginStringClaim_sub="broker"'
        ' unsecuredValidatorRequiredScope="use";',
        f"{signed}.jaas.config": f"{MODULE} required;",
        f"{signed}.server.callback.handler.class": VALIDATOR,
        "sasl.oauthbearer.jwks.endpoint.url": issuer.jwks_url,
        "sasl.oauthbearer.expected.audience": f"other,{AUDIENCE}",
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "connection.failed.authentication.delay.ms": "10",
    }
    return _Settings(ports, properties)


def _protocols(names: Mapping[str, str]) -> str:
    return ",".join(f"{name}:{protocol}" for name, protocol in names.items())


class OAuthBroker(BrokerProcess):
    """A kafkapy broker. `servers` returns the address of a listener."""

    def __init__(
        self, log_dir: Path, issuer: Issuer, overrides: Mapping[str, str] | None = None
    ) -> None:
        self._ports, properties = _settings(issuer)
        port = free_port()
        properties |= {
            "listeners": f"PLAINTEXT://127.0.0.1:{port},"
            + ",".join(f"{name}://127.0.0.1:{at}" for name, at in self._ports.items()),
            "listener.security.protocol.map": _protocols(
                {"PLAINTEXT": "PLAINTEXT", **dict.fromkeys(LISTENERS, "SASL_PLAINTEXT")}
            ),
            "kafkapy.metrics.port": str(free_port()),
            **(overrides or {}),
        }
        self.metrics_port = int(properties["kafkapy.metrics.port"])
        super().__init__(log_dir, properties)
        self.port = port
        self.bootstrap_servers = f"127.0.0.1:{port}"

    def servers(self, listener: str) -> str:
        return f"127.0.0.1:{self._ports[listener]}"


class ApacheOAuthBroker(apache_kafka.ApacheBroker):
    """A broker of Apache Kafka 3.9 with the same settings."""

    def __init__(
        self, log_dir: Path, issuer: Issuer, overrides: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(log_dir)
        self._ports, properties = _settings(issuer)
        own = "".join(f",{name}://127.0.0.1:{at}" for name, at in self._ports.items())
        self.properties |= properties
        self.properties |= {
            "listeners": self.properties["listeners"] + own,
            "listener.security.protocol.map": _protocols(
                {
                    "PLAINTEXT": "PLAINTEXT",
                    "CONTROLLER": "PLAINTEXT",
                    **dict.fromkeys(LISTENERS, "SASL_PLAINTEXT"),
                }
            ),
            **(overrides or {}),
        }
        apache_kafka.write_properties(self.config, self.properties)

    def servers(self, listener: str) -> str:
        return f"127.0.0.1:{self._ports[listener]}"


def unsecured_client(subject: str = CLIENT_ID, scope: str = "use") -> dict[str, str]:
    """Client properties for Java clients and for ours, for a token that the client makes."""
    claims = f'unsecuredLoginStringClaim_sub="{subject}" unsecuredLoginStringClaim_scope="{scope}"'
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{MODULE} required {claims};",
    }


def fetching_client(url: str, secret: str = CLIENT_SECRET) -> dict[str, str]:
    """Client properties for a token of the issuer, or of a file."""
    login = f'clientId="{CLIENT_ID}" clientSecret="{secret}" scope="use more"'
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{MODULE} required {login};",
        "sasl.login.callback.handler.class": LOGIN_HANDLER,
        "sasl.oauthbearer.token.endpoint.url": url,
    }


def message_of(token: str, more: str = "", authorization_id: str = "") -> bytes:
    """The first message of a client that has `token`."""
    who = f"a={authorization_id}" if authorization_id else ""
    return f"n,{who},\x01auth=Bearer {token}{more}\x01\x01".encode()


class Answer(NamedTuple):
    """A broker's response to one message of a login."""

    error_code: int
    error_message: str | None
    auth_bytes: bytes
    has_session: bool


Outcome = tuple[Answer | None, ...]
"""The responses; None where the connection was closed instead."""


def logs_in(servers: str, first: bytes, second: bytes | None = b"\x01") -> Outcome:
    """The answers to the first message and, if that brings a challenge, to the second."""
    with RawConnection(servers) as connection:
        shake = SaslHandshakeRequest(mechanism="OAUTHBEARER")
        assert connection.request(shake, 1, SaslHandshakeResponse).error_code == 0
        answers: list[Answer | None] = [_says(connection, first)]
        if answers[0] is not None and answers[0].auth_bytes and second is not None:
            answers.append(_says(connection, second))
        return tuple(answers)


def _says(connection: RawConnection, message: bytes) -> Answer | None:
    found = connection.authenticate(message)
    if found is None:
        return None
    return Answer(
        found.error_code,
        found.error_message,
        bytes(found.auth_bytes),
        found.session_lifetime_ms > 0,
    )
