"""Apache Kafka 3.9 with a second listener: TLS both ways, and SASL SCRAM over it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import free_port
from tests.harness.processes.topics import QUIET
from tests.harness.security.certificates import make_identity

USER, PASSWORD = "alice", "secret"
_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"


class SecureApacheBroker(apache_kafka.ApacheBroker):
    """PLAINTEXT at `bootstrap_servers`, SASL_SSL with client certificates at `secure_servers`."""

    def __init__(self, log_dir: Path, overrides: Mapping[str, str] | None = None) -> None:
        super().__init__(log_dir, overrides)
        self.secure_servers = f"localhost:{free_port()}"
        home = Path(f"{log_dir}-tls")
        home.mkdir(parents=True, exist_ok=True)
        self._broker = make_identity(home, "broker")
        self._client = make_identity(home, "client")
        self.properties |= {
            "listeners": f"{self.properties['listeners']},SECURE://{self.secure_servers}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
            "SECURE:SASL_SSL",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "listener.name.secure.scram-sha-256.sasl.jaas.config": f"{_LOGIN};",
            "listener.name.secure.ssl.client.auth": "required",
            **{
                f"listener.name.secure.{name}": value
                for name, value in _stores(self._broker, self._client).items()
            },
        }
        apache_kafka.write_properties(self.config, self.properties)

    def start(self) -> Self:
        super().start()
        secret = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        user = UserScramCredentialUpsertion(USER, secret, PASSWORD.encode())
        admin = AdminClient({"bootstrap.servers": self.bootstrap_servers, **QUIET})
        admin.alter_user_scram_credentials([user])[USER].result(timeout=30)
        return self

    def client_properties(self, password: str = PASSWORD) -> dict[str, str]:
        """Client properties for the secure listener, with Apache Kafka's names."""
        return {
            "bootstrap.servers": self.secure_servers,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": f'{_LOGIN} username="{USER}" password="{password}";',
            **_stores(self._client, self._broker),
        }

    def spark_options(self, password: str = PASSWORD) -> dict[str, str]:
        """The client properties as options of a Spark source or sink."""
        return {f"kafka.{name}": value for name, value in self.client_properties(password).items()}


def _stores(own: Path, peer: Path) -> dict[str, str]:
    """TLS stores: the own key as keystore, the peer's certificate as truststore."""
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(own),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(peer.with_suffix(".crt")),
    }
