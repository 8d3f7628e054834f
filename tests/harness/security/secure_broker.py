"""A kafkapy broker with a listener of each kind, and the configs of its clients."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple, Self

from kafkapy.admin.scram import NewCredential, alter_scram
from kafkapy.client.cluster import Cluster
from kafkapy.security.sasl.scram import ScramMechanism
from tests.harness.processes.broker_process import BrokerProcess, free_port
from tests.harness.security.certificates import make_identity

USER, PASSWORD = "alice", "secret"
PLAIN_LOGIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM_LOGIN: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required"
PROTOCOLS: Final = {
    "TLS": "SSL",
    "MUTUAL": "SSL",
    "SASL": "SASL_PLAINTEXT",
    "BOTH": "SASL_SSL",
}


class Way(NamedTuple):
    """A listener and how to log in there."""

    listener: str
    mechanism: str = ""

    @property
    def protocol(self) -> str:
        return PROTOCOLS[self.listener]

    def __str__(self) -> str:
        return f"{self.listener}-{self.mechanism}".rstrip("-")


WAYS: Final = (
    Way("TLS"),
    Way("MUTUAL"),
    Way("SASL", "PLAIN"),
    Way("SASL", "SCRAM-SHA-256"),
    Way("SASL", "SCRAM-SHA-512"),
    Way("BOTH", "PLAIN"),
    Way("BOTH", "SCRAM-SHA-512"),
)


class SecureBroker(BrokerProcess):
    """PLAINTEXT at `bootstrap_servers`, each other listener at `servers(way)`; it has one user."""

    def __init__(self, directory: Path, overrides: Mapping[str, str] | None = None) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.identity = make_identity(directory, "broker")
        self.client_identity = make_identity(directory, "client")
        self._ports = {name: free_port() for name in PROTOCOLS}
        port = free_port()
        listeners = {"PLAINTEXT": port, **self._ports}
        protocols = {"PLAINTEXT": "PLAINTEXT", **PROTOCOLS}
        users = f'{PLAIN_LOGIN} user_{USER}="{PASSWORD}";'
        settings = {
            "listeners": ",".join(f"{n}://127.0.0.1:{p}" for n, p in listeners.items()),
            "listener.security.protocol.map": ",".join(f"{n}:{p}" for n, p in protocols.items()),
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            "listener.name.sasl.plain.sasl.jaas.config": users,
            "listener.name.both.plain.sasl.jaas.config": users,
            "ssl.keystore.location": str(self.identity),
            "ssl.truststore.location": str(self.certificate(self.client_identity)),
            "listener.name.mutual.ssl.client.auth": "required",
            "connection.failed.authentication.delay.ms": "10",
            **(overrides or {}),
        }
        super().__init__(directory / "logs", settings)
        self.port = port
        self.bootstrap_servers = f"127.0.0.1:{port}"

    def start(self) -> Self:
        super().start()
        with Cluster(self.bootstrap_servers) as cluster:
            for mechanism in ScramMechanism:
                alter_scram(cluster, USER, {mechanism: NewCredential(PASSWORD)}, ())
        return self

    @staticmethod
    def certificate(identity: Path) -> Path:
        """The certificate with which others verify an identity."""
        return identity.with_suffix(".crt")

    def port_of(self, listener: str) -> int:
        return self._ports[listener]

    def servers(self, way: Way) -> str:
        return f"127.0.0.1:{self.port_of(way.listener)}"

    def librdkafka(self, way: Way, password: str = PASSWORD) -> dict[str, str]:
        """librdkafka's configuration."""
        config = {
            "bootstrap.servers": self.servers(way),
            "security.protocol": way.protocol.lower(),
        }
        if way.protocol.endswith("SSL"):
            config["ssl.ca.location"] = str(self.certificate(self.identity))
        if way.listener == "MUTUAL":
            config["ssl.certificate.location"] = str(self.certificate(self.client_identity))
            config["ssl.key.location"] = str(self.client_identity.with_suffix(".key"))
        if way.mechanism:
            config |= {
                "sasl.mechanism": way.mechanism,
                "sasl.username": USER,
                "sasl.password": password,
            }
        return config

    def java(self, way: Way, password: str = PASSWORD) -> dict[str, str]:
        """Client properties for Java clients and for ours."""
        properties = {"security.protocol": way.protocol}
        if way.protocol.endswith("SSL"):
            properties |= {
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(self.certificate(self.identity)),
            }
        if way.listener == "MUTUAL":
            properties |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(self.client_identity),
            }
        if way.mechanism:
            module = PLAIN_LOGIN if way.mechanism == "PLAIN" else SCRAM_LOGIN
            properties |= {
                "sasl.mechanism": way.mechanism,
                "sasl.jaas.config": f'{module} username="{USER}" password="{password}";',
            }
        return properties

    def spark_options(self, password: str = PASSWORD) -> dict[str, str]:
        """The options of a Spark source or sink, by TLS and SCRAM with a certificate of its own."""
        way = Way("BOTH", "SCRAM-SHA-256")
        properties = {
            "bootstrap.servers": self.servers(way),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.client_identity),
            **self.java(way, password),
        }
        return {f"kafka.{name}": value for name, value in properties.items()}

    def refusals(self) -> list[str]:
        """Lines of its log about clients that it rejected."""
        said = ("Failed authentication with", "Closing connection to")
        return [
            line for line in self.output_text().splitlines() if any(word in line for word in said)
        ]
