"""Two brokers that reach each other by SASL_SSL only: what is acknowledged is on both.

The other broker is ours, or Apache Kafka 3.9 where its jars are there. Sessions between them end
after a second, so that each renews its own again and again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from dev import fetch_peers
from kafkapy.client.cluster import Cluster
from kafkapy.security.oauth.login import TOKEN_URL
from tests.harness.faults.exactly_once import read
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import BrokerProcess, ServerProcess, free_port
from tests.harness.processes.topics import QUIET, create_topic
from tests.harness.processes.waiting import LIMIT_S, wait_until
from tests.harness.processes.zookeeper_server import zookeeper_for
from tests.harness.scripted.cli import kafkapy
from tests.harness.security.certificates import can_make, make_identity
from tests.harness.security.kerberos_realm import SERVICE, KerberosRealm, line
from tests.harness.security.oauth_broker import VALIDATOR, fetching_client, unsecured_client
from tests.harness.security.secure_broker import PLAIN_LOGIN, SCRAM_LOGIN
from tests.harness.security.token_issuer import AUDIENCE, Issuer

SESSION_MS = 1000
TOPIC, PARTITIONS = "replicated", 4
USER, PASSWORD = "broker", "between-brokers"
OAUTH = "OAUTHBEARER"
KERBEROS = "GSSAPI"
UNSECURED = "UNSECURED"  # the same with tokens that brokers make
MECHANISMS = ("PLAIN", "SCRAM-SHA-512", OAUTH, *([KERBEROS] if fetch_peers.has_kerberos() else []))
OTHERS = ["kafkapy", "apache"] if apache_kafka.installed() else ["kafkapy"]


class SecureCluster:
    """Broker 1 is ours, and the controller as it starts first; broker 2 is who it is to be."""

    def __init__(
        self, directory: Path, mechanism: str, other: str, realm: KerberosRealm | None = None
    ) -> None:
        self.fetches_tokens = mechanism == OAUTH
        mechanism = OAUTH if mechanism == UNSECURED else mechanism
        self.mechanism = mechanism
        self.issuer = Issuer()
        self.issuer.lifetime_s = 10
        self.zookeeper = zookeeper_for(directory)
        identity = make_identity(directory, "brokers")
        login = f'username="{USER}" password="{PASSWORD}"'
        jaas = {
            "PLAIN": f'{PLAIN_LOGIN} {login} user_{USER}="{PASSWORD}";',
            "SCRAM-SHA-512": f"{SCRAM_LOGIN} {login};",
            OAUTH: unsecured_client(USER)["sasl.jaas.config"],
            KERBEROS: "" if realm is None else line(realm.keytab(SERVICE), SERVICE),
        }
        prefix = f"listener.name.between.{mechanism.lower()}"
        self._settings = {
            "zookeeper.connect": self.zookeeper.connect(),
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BETWEEN:SASL_SSL",
            "inter.broker.listener.name": "BETWEEN",
            "sasl.enabled.mechanisms": mechanism,
            "sasl.mechanism.inter.broker.protocol": mechanism,
            "sasl.kerberos.service.name": "kafka",
            f"{prefix}.sasl.jaas.config": jaas[mechanism],
            f"{prefix}.connections.max.reauth.ms": str(SESSION_MS),
            "listener.name.between.ssl.client.auth": "required",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(identity),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(identity.with_suffix(".crt")),
            "replica.lag.time.max.ms": "5000",
            "zookeeper.session.timeout.ms": "9000",
            "controlled.shutdown.retry.backoff.ms": "200",
            **(self._tokens(prefix) if self.fetches_tokens else {}),
        }
        self.ours: ServerProcess = self._make(directory, 1, "kafkapy")
        self.other: ServerProcess = self._make(directory, 2, other)

    def _tokens(self, prefix: str) -> Mapping[str, str]:
        """Tokens of the issuer's, each of which serves for half of its ten seconds."""
        client = fetching_client(self.issuer.token_url)
        names = ("sasl.jaas.config", "sasl.login.callback.handler.class", TOKEN_URL)
        return {
            **{f"{prefix}.{name}": client[name] for name in names},
            f"{prefix}.sasl.server.callback.handler.class": VALIDATOR,
            "sasl.oauthbearer.jwks.endpoint.url": self.issuer.jwks_url,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.login.refresh.window.factor": "0.5",
            "sasl.login.refresh.window.jitter": "0.0",
        }

    def _make(self, directory: Path, broker_id: int, kind: str) -> ServerProcess:
        port, between = free_port(), free_port()
        settings = {
            **self._settings,
            "broker.id": str(broker_id),
            "listeners": f"PLAINTEXT://127.0.0.1:{port},BETWEEN://localhost:{between}",
        }
        log_dir = directory / f"broker-{broker_id}"
        made: ServerProcess
        if kind == "kafkapy":
            made = BrokerProcess(log_dir, settings)
        else:
            made = apache_kafka.ApacheBroker(log_dir, settings, self.zookeeper)
        made.port = port
        made.bootstrap_servers = f"127.0.0.1:{port}"
        return made

    def start(self) -> None:
        self.zookeeper.start()
        self.ours.start()
        if self.mechanism.startswith("SCRAM"):
            change = ("--add-config", f"{self.mechanism}=[password={PASSWORD}]")
            words = ("--zookeeper", self.zookeeper.connect(), "--entity-type", "users")
            done = kafkapy("configs", *words, "--entity-name", USER, "--alter", *change)
            assert done.status == 0, done.stderr
        self.other.start()
        self.mark_complete(2)

    def mark_complete(self, brokers: int) -> None:
        """Wait until both know so many."""
        for broker in (self.ours, self.other):
            with Cluster(broker.bootstrap_servers) as cluster:

                def are_known(cluster: Cluster = cluster) -> bool:
                    return len(cluster.metadata([], True).brokers) == brokers

                wait_until(are_known, f"{broker.name} knows {brokers} brokers")

    def wait_for_isr(self, size: int) -> None:
        """Of every partition, as broker 1 tells."""
        with Cluster(self.ours.bootstrap_servers) as cluster:

            def are_in_sync() -> bool:
                topic = cluster.metadata([TOPIC], True).topics[TOPIC]
                return {len(p.isr) for p in topic.partitions.values()} == {size}

            wait_until(are_in_sync, f"{size} replicas in sync")

    def have_new_tokens(self) -> bool:
        return [path for path, _, _ in self.issuer.requests].count("/token") >= 4

    def stop(self) -> None:
        for process in (self.ours, self.other):
            if process.running:
                process.kill()
        self.zookeeper.release()


@pytest.fixture(
    params=[*((m, o) for o in OTHERS for m in MECHANISMS), (UNSECURED, OTHERS[-1])], ids="-".join
)
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SecureCluster | None]:
    if not can_make("SASL_SSL between brokers"):
        yield None
        return
    with ExitStack() as undo:
        by_kerberos = request.param[0] == KERBEROS
        realm = undo.enter_context(KerberosRealm(tmp_path / "realm")) if by_kerberos else None
        made = SecureCluster(tmp_path, *request.param, realm)
        undo.enter_context(made.issuer)
        undo.callback(made.stop)
        made.start()
        yield made


def commit_a_transaction(servers: str) -> None:
    """Partitions are led by both brokers: one asks the other, and tells it of the end."""
    topic = "transactional"
    create_topic(servers, topic, PARTITIONS, replication_factor=2)
    producer = Producer({"bootstrap.servers": servers, "transactional.id": topic, **QUIET})
    producer.init_transactions(LIMIT_S)
    producer.begin_transaction()
    for index in range(PARTITIONS):
        producer.produce(topic, b"%d" % index, partition=index)
    producer.commit_transaction(LIMIT_S)
    wait_until(lambda: len(read(servers, topic)) == PARTITIONS, "every partition has its marker")


def test_what_is_acknowledged_is_on_both(cluster: SecureCluster | None) -> None:
    if cluster is None:
        return
    both = f"{cluster.ours.bootstrap_servers},{cluster.other.bootstrap_servers}"
    create_topic(both, TOPIC, PARTITIONS, replication_factor=2)
    cluster.wait_for_isr(2)
    producer = Producer({"bootstrap.servers": both, "acks": "all", **QUIET})
    written: list[int] = []
    sent = 0

    def told(error: object, message: object) -> None:
        assert error is None, error
        written.append(message.timestamp()[1])  # type: ignore[attr-defined]

    def have_lived_long() -> bool:
        nonlocal sent
        producer.produce(TOPIC, b"%d" % sent, on_delivery=told)
        sent += 1
        assert producer.flush(LIMIT_S) == 0
        return written[-1] - written[0] > 3 * SESSION_MS

    wait_until(have_lived_long, "several sessions between the brokers")
    if cluster.fetches_tokens:
        wait_until(cluster.have_new_tokens, "both have fetched a token again")
    cluster.wait_for_isr(2)
    commit_a_transaction(both)
    if isinstance(cluster.other, BrokerProcess):
        # It asks the controller before it stops; and comes back. Apache's does when certificates
        # are replaced, below.
        assert cluster.other.stop() == 0
        cluster.wait_for_isr(1)
        cluster.other.start()
        cluster.wait_for_isr(2)
    assert "Traceback" not in cluster.ours.output_text()
    assert "Failed authentication" not in cluster.ours.output_text()
    assert "session has expired" not in cluster.ours.output_text()
    cluster.ours.kill()
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.other.bootstrap_servers,
            "group.id": "g",
            "enable.auto.commit": False,
            **QUIET,
        }
    )
    consumer.assign([TopicPartition(TOPIC, index, 0) for index in range(PARTITIONS)])
    found: set[bytes] = set()

    def is_read() -> bool:
        found.update(m.value() for m in consumer.consume(1000, 0.5) if not m.error())
        return len(found) == sent

    wait_until(is_read, f"all {sent} records from the broker that is left")
    consumer.close()


def alter(broker: ServerProcess, broker_id: int, key: str, store: Path) -> tuple[int, str]:
    """Change a store between the brokers; the exit status, and what was said."""
    words = ("--bootstrap-server", broker.bootstrap_servers, "--entity-type", "brokers")
    change = f"listener.name.between.ssl.{key}.location={store}"
    who = ("--entity-name", str(broker_id), "--alter", "--add-config")
    done = kafkapy("configs", *words, *who, change)
    return done.status, done.stdout + done.stderr


@pytest.mark.parametrize(
    "cluster", [("PLAIN", other) for other in OTHERS], ids="-".join, indirect=True
)
def test_certificates_are_replaced_while_both_run(
    cluster: SecureCluster | None, tmp_path: Path
) -> None:
    """First all trust the new one too, then all show it, then none trusts the old one."""
    if cluster is None:
        return
    create_topic(cluster.ours.bootstrap_servers, TOPIC, PARTITIONS, replication_factor=2)
    (tmp_path / "new").mkdir()
    new, both = make_identity(tmp_path / "new", "brokers"), tmp_path / "both.crt"
    trusted = new.with_suffix(".crt")
    both.write_text((tmp_path / "brokers.crt").read_text() + trusted.read_text())
    brokers = {1: cluster.ours, 2: cluster.other}
    status, said = alter(cluster.ours, 1, "keystore", new)
    assert status != 0
    assert "a broker with the stores in force could not connect to one with the new" in said
    for key, store in (("truststore", both), ("keystore", new), ("truststore", trusted)):
        for broker_id, broker in brokers.items():
            assert alter(broker, broker_id, key, store)[0] == 0, (key, broker_id)
    assert cluster.other.stop() in (0, 143)
    cluster.wait_for_isr(1)
    cluster.other.start()
    cluster.wait_for_isr(2)
    assert cluster.ours.stop() == 0
    cluster.ours.start()
    cluster.wait_for_isr(2)
    produced: list[object] = []
    producer = Producer({"bootstrap.servers": cluster.ours.bootstrap_servers, **QUIET})
    for index in range(PARTITIONS):
        producer.produce(TOPIC, b"x", partition=index, on_delivery=lambda e, _: produced.append(e))
    assert producer.flush(LIMIT_S) == 0
    assert produced == [None] * PARTITIONS
    assert "Failed authentication" not in cluster.ours.output_text()
