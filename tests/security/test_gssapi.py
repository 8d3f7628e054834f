"""SASL/GSSAPI with a realm of MIT Kerberos: who gets in with which tickets, as whom, and that
Apache Kafka 3.9 answers the same. What a user would lose: the login of a company's directory, or
the certainty that nobody gets in without it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dev import fetch_peers
from kafkapy.client.batch_producer import BatchProducer
from kafkapy.client.cluster import Cluster
from kafkapy.client.fetch import fetch_batches
from kafkapy.client.producer_settings import producer_settings
from kafkapy.common.errors import ApiError
from kafkapy.common.prefixed_properties import PrefixedProperties
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkapy.record.builder import RecordData, build_batch
from kafkapy.security.kerberos.gss_context import CHOICE, GssContext
from kafkapy.security.kerberos.gss_library import Initiator
from kafkapy.security.kerberos.login import kerberos_login
from tests.conformance.process_peers import run
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import BrokerProcess, free_port
from tests.harness.processes.java_console import send_lines_through_java
from tests.harness.processes.kafka_python import closed
from tests.harness.processes.raw_connection import RawConnection
from tests.harness.processes.scraped import samples_of
from tests.harness.processes.waiting import LIMIT_S, wait_until
from tests.harness.processes.zookeeper_server import ZooKeeperServer
from tests.harness.scripted.cli import kafkapy
from tests.harness.security.kerberos_broker import (
    ApacheKerberosBroker,
    KerberosBroker,
    Login,
    Outcome,
    establish,
)
from tests.harness.security.kerberos_realm import (
    NAME,
    SERVICE,
    KerberosRealm,
    cache_line,
    client,
    line,
)

with warnings.catch_warnings():  # theirs, not ours
    warnings.simplefilter("ignore")
    import kafka

AS_IN_KAFKA = (
    [KerberosBroker, ApacheKerberosBroker] if apache_kafka.installed() else [KerberosBroker]
)
AnyBroker = KerberosBroker | ApacheKerberosBroker
PEOPLE = ("alice", "clerk-bob", "clerk-eve", "app/host")
REFUSED = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism"
    " GSSAPI"
)


class Company(NamedTuple):
    """A realm, the keys of some in it, and its brokers."""

    realm: KerberosRealm
    keytabs: dict[str, Path]
    brokers: dict[type, AnyBroker]

    @property
    def ours(self) -> KerberosBroker:
        found = self.brokers[KerberosBroker]
        assert isinstance(found, KerberosBroker)
        return found

    def client(self, principal: str) -> dict[str, str]:
        """The client properties of who has a keytab."""
        return client(line(self.keytabs[principal], principal))

    def config(self, properties: dict[str, str]) -> str:
        """Properties as a file."""
        return str(
            apache_kafka.write_properties(self.realm.directory / "client.properties", properties)
        )

    def context(self, principal: str = "alice") -> GssContext:
        """A client's side of Kerberos."""
        login = kerberos_login(PrefixedProperties(self.client(principal)))
        return Initiator(login).begin("localhost")


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    home = tmp_path_factory.mktemp("company")
    with KerberosRealm(home / "realm") as realm:
        keytabs = {each: realm.keytab(each) for each in (*PEOPLE, SERVICE)}
        brokers: dict[type, AnyBroker] = {}
        try:
            for kind in AS_IN_KAFKA:
                brokers[kind] = kind(home / kind.__name__, keytabs[SERVICE])
                brokers[kind].start()
            yield Company(realm, keytabs, brokers)
        finally:
            for broker in brokers.values():
                broker.kill()
    assert "Traceback" not in brokers[KerberosBroker].output_text()


@pytest.fixture(params=AS_IN_KAFKA, ids=lambda kind: kind.__name__)
def either(request: pytest.FixtureRequest, company: Company) -> AnyBroker:
    return company.brokers[request.param]


# what a client may say


def choosing(choice: bytes) -> Callable[[GssContext, Login], None]:
    """Kerberos as it should be, and then this."""

    def talk(context: GssContext, login: Login) -> None:
        context.unwrap(establish(context, login.send))
        login.send(context.wrap(choice))

    return talk


def beginning(message: bytes) -> Callable[[GssContext, Login], None]:
    """This, and no Kerberos."""

    def talk(context: GssContext, login: Login) -> None:
        login.send(message)

    return talk


def talks_when_it_should_listen(context: GssContext, login: Login) -> None:
    context.step(login.send(context.step(b"")))
    login.send(b"more")


def chooses_unwrapped(context: GssContext, login: Login) -> None:
    establish(context, login.send)
    login.send(CHOICE)


TALKS = {
    "good": choosing(CHOICE),
    "as oneself": choosing(CHOICE + f"alice@{NAME}".encode()),
    "as another": choosing(CHOICE + f"clerk-bob@{NAME}".encode()),
    "as Java writes sizes": choosing(b"\1\0\xff\xff"),
    "integrity": choosing(b"\2\0\xff\xff"),
    "garbage": beginning(b"garbage"),
    "nothing": beginning(b""),
    "plain": beginning(b"\0alice\0secret"),
    "not wrapped": chooses_unwrapped,
    "more": talks_when_it_should_listen,
}


def outcome(company: Company, broker: AnyBroker, name: str) -> Outcome:
    login = Login(broker.servers)
    TALKS[name](company.context(), login)
    return login.close()


@pytest.mark.parametrize("name", TALKS)
def test_same_answers_to_the_same_messages(company: Company, name: str) -> None:
    answers = {kind: outcome(company, broker, name) for kind, broker in company.brokers.items()}
    ours = answers[KerberosBroker]
    assert all(theirs == ours for theirs in answers.values()), answers
    last = ours[-1]
    assert last is not None
    if name in ("good", "as oneself", "as another", "as Java writes sizes"):
        assert (last.error_code, last.error_message) == (0, "")
    else:
        assert (last.error_code, last.error_message) == (58, REFUSED)


def test_where_apaches_broker_has_no_answer_ours_refuses(company: Company) -> None:
    """An exception ends the connection there (3.9.1)."""
    login = Login(company.ours.servers)
    choosing(b"\1")(company.context(), login)
    assert login.close()[-1] == (58, REFUSED, False, 0)


def test_a_ticket_is_not_taken_twice(either: AnyBroker, company: Company) -> None:
    token = company.context().step(b"")
    for _ in range(2):
        login = Login(either.servers)
        login.send(token)
        answers = login.close()
    assert answers == (None,) or answers[0].error_message == REFUSED


def test_bare_frames(either: AnyBroker, company: Company) -> None:
    """After the last there is no answer, not even an empty one: the client knows."""
    context = company.context()
    with RawConnection(either.servers) as connection:
        shake = SaslHandshakeRequest(mechanism="GSSAPI")
        shaken = connection.request(shake, 0, SaslHandshakeResponse)
        assert (shaken.error_code, shaken.mechanisms) == (0, ["GSSAPI"])

        def say(message: bytes) -> bytes:
            connection.send(len(message).to_bytes(4, "big") + message)
            return connection.read_frame() or b""

        context.unwrap(establish(context, say))
        choice = context.wrap(CHOICE)
        connection.send(len(choice).to_bytes(4, "big") + choice)
        assert connection.request(ListGroupsRequest(), 0, ListGroupsResponse).error_code == 0


# clients


def test_our_tools(either: AnyBroker, company: Company) -> None:
    config = company.config(company.client("alice"))
    words = ("--bootstrap-server", either.servers, "--command-config", config)
    made = kafkapy("topics", *words, "--create", "--topic", "own")
    assert (made.status, made.stdout) == (0, "Created topic own.\n"), made.stderr
    assert "own" in kafkapy("topics", *words, "--list").stdout.splitlines()


def test_what_spark_writes_and_reads_with(either: AnyBroker, company: Company) -> None:
    where = TopicPartition("spark", 0)
    cache = company.realm.tickets("alice", company.keytabs["alice"])
    properties = client(cache_line(cache))
    with Cluster(either.servers, properties) as cluster:
        producer = BatchProducer(cluster, producer_settings(properties))
        assert len(producer.leaders("spark")) == 1
        producer.send(where, bytearray(build_batch([RecordData(None, b"row")])))
        producer.flush()
        assert [b"row" in each.buffer.tobytes() for each in fetch_batches(cluster, where, 0, 1)]


def test_what_librdkafka_lacks_is_one_line(company: Company) -> None:
    config = company.config(company.client("alice"))
    words = ("--bootstrap-server", company.ours.servers, "--topic", "t")
    done = kafkapy("console-producer", *words, "--producer.config", config, stdin=b"a\n")
    assert done.status != 0
    assert "librdkafka, which produces and consumes here, was built without it" in done.stderr
    assert done.stderr.count("\n") == 1


if apache_kafka.installed():

    @pytest.mark.parametrize("by", ["keytab", "tickets"])
    def test_apache_kafkas_console(company: Company, by: str) -> None:
        jaas = company.client("alice")["sasl.jaas.config"]
        if by == "tickets":
            jaas = cache_line(company.realm.tickets("alice", company.keytabs["alice"]))
        config = company.config(client(jaas))
        words = ("--bootstrap-server", company.ours.servers, "--topic", f"java-{by}")
        send_lines_through_java(config, *words)


if fetch_peers.has_kcat():

    def test_debians_librdkafka(company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
        cache = company.realm.tickets("alice", company.keytabs["alice"])
        monkeypatch.setenv("KRB5CCNAME", str(cache))
        options = {
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "sasl.kerberos.min.time.before.relogin": "0",
        }
        words = ["kcat", "-b", company.ours.servers]
        words += [word for key, value in options.items() for word in ("-X", f"{key}={value}")]
        run([*words, "-P", "-t", "kcat"], b"one\ntwo\n")
        read = [*words, "-q", "-C", "-t", "kcat", "-o", "beginning", "-c", "2"]
        assert run(read) == b"one\ntwo\n"


def test_a_client_in_python(company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = company.realm.tickets("alice", company.keytabs["alice"])
    monkeypatch.setenv("KRB5CCNAME", str(cache))
    options: dict[str, Any] = {
        "bootstrap_servers": company.ours.servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "GSSAPI",
        "sasl_kerberos_service_name": "kafka",
    }
    with closed(kafka.KafkaProducer(**options)) as producer:
        producer.send("python", b"row")
    options |= {"auto_offset_reset": "earliest", "consumer_timeout_ms": int(LIMIT_S * 1000)}
    with closed(kafka.KafkaConsumer("python", **options)) as consumer:
        assert next(consumer).value == b"row"


# who gets in, and as whom


def test_users_are_named_by_the_rules(company: Company) -> None:
    """Entries are of short names: of the two clerks BOB may create."""
    broker = company.ours
    add = ("--add", "--allow-principal", "User:BOB", "--operation", "Create", "--topic", "of-*")
    done = kafkapy("acls", "--bootstrap-server", broker.bootstrap_servers, *add[:-1], "of-bob")
    assert done.status == 0, done.stderr

    def creates(principal: str, topic: str) -> bool:
        config = company.config(company.client(principal))
        words = ("--bootstrap-server", broker.servers, "--command-config", config)
        done = kafkapy("topics", *words, "--create", "--topic", topic)
        assert done.status == 0 or "authorization failed" in done.stderr, done.stderr
        return done.status == 0

    wait_until(lambda: creates("clerk-bob", "of-bob"), "the entry counts")
    assert not creates("clerk-eve", "of-bob")
    assert not creates("app/host", "of-bob")
    assert creates("alice", "of-alice")


def test_logins_are_counted(company: Company) -> None:
    name = "server_socketservermetrics_{}_authentication_total listener=KERBEROS mechanism=GSSAPI"
    good, bad = name.format("successful"), name.format("failed")
    before = samples_of(company.ours.metrics_port)
    for talk in ("good", "garbage", "more"):
        outcome(company, company.ours, talk)
    after = samples_of(company.ours.metrics_port)
    assert after[good] - before.get(good, 0) == 1
    assert after[bad] - before.get(bad, 0) == 2


def refusal(company: Company, properties: dict[str, str]) -> str:
    """Error message of our client when its login fails."""
    with Cluster(company.ours.servers, properties) as cluster, pytest.raises(ApiError) as refused:
        cluster.metadata([])
    said = refused.value.message
    assert "\n" not in said
    return said.removeprefix("No bootstrap server can be reached. ")


def test_what_keeps_a_client_out_is_one_line(company: Company) -> None:
    realm, alice = company.realm, company.keytabs["alice"]

    def said(keytab: Path, principal: str) -> str:
        return refusal(company, client(line(keytab, principal)))

    who = f"nobody@{NAME}"
    assert said(alice, "nobody") == (
        f"No key of {who} in keytab {alice}: No key table entry found for {who}"
    )
    missing, who = realm.directory / "missing", f"alice@{NAME}"
    assert said(missing, "alice") == (
        f"No key of {who} in keytab {missing}: Key table file '{missing}' not found"
    )
    assert refusal(company, client(cache_line(missing))) == (
        f"No Kerberos login by the ticket cache {missing}, which kinit fills: No credentials cache"
        " found"
    )
    old, who = realm.keytab("changed"), f"changed@{NAME}"
    kept = old.rename(old.with_suffix(".old"))
    realm.administer("cpw -randkey changed")
    no_login = f"No Kerberos login of {who} by keytab {kept}: "
    assert said(kept, "changed").startswith(no_login)
    realm.administer("delprinc -force changed")
    assert said(kept, "changed") == f"{no_login}Client '{who}' not found in Kerberos database"
    other = {**company.client("alice"), "sasl.kerberos.service.name": "other"}
    assert refusal(company, other) == (
        "No Kerberos ticket for other/localhost: Server other/localhost@"
        f"{NAME} not found in Kerberos database"
    )


def test_tickets_that_are_over(company: Company) -> None:
    cache = company.realm.tickets("alice", company.keytabs["alice"], "-l", "1s")
    said: list[str] = []

    def is_over() -> bool:
        with Cluster(company.ours.servers, client(cache_line(cache))) as cluster:
            try:
                cluster.metadata([])
            except ApiError as error:
                said.append(error.message)
        return bool(said)

    wait_until(is_over, "the ticket is over")
    assert said[0].endswith("No Kerberos ticket for kafka/localhost: Ticket expired")


def test_a_session_goes_on_with_new_tickets(company: Company, tmp_path: Path) -> None:
    """Tickets of some seconds, sessions of one: the connection stays."""
    keytab = company.realm.keytab("brief", "-maxlife", "4sec")
    limits = {"connections.max.reauth.ms": "1000", "super.users": "User:brief"}
    with KerberosBroker(tmp_path / "logs", company.keytabs[SERVICE], limits) as broker:
        with Cluster(broker.servers, client(line(keytab, "brief"))) as cluster:
            name = (
                "server_socketservermetrics_successful_reauthentication_total listener=KERBEROS"
                " mechanism=GSSAPI"
            )

            def has_renewed() -> bool:
                assert cluster.metadata([], refresh=True).brokers
                return samples_of(broker.metrics_port).get(name, 0) >= 8

            wait_until(has_renewed, "several sessions")
        assert "session has expired" not in broker.output_text()
        assert "Failed authentication" not in broker.output_text()


# brokers that do not start


@pytest.mark.parametrize(
    ("keytab", "more", "said"),
    [
        ("missing", {}, f"No key of {SERVICE}@{NAME} in keytab "),
        ("alice", {}, f"alice.keytab: No key table entry found for {SERVICE}@{NAME}"),
        (SERVICE, {"sasl.kerberos.service.name": ""}, "sasl.kerberos.service.name must"),
        (
            SERVICE,
            {"sasl.kerberos.principal.to.local.rules": "RULE:x"},
            "sasl.kerberos.principal.to.local.rules: RULE:x is not a rule",
        ),
    ],
)
def test_what_cannot_be_served_is_one_line(
    company: Company, tmp_path: Path, keytab: str, more: dict[str, str], said: str
) -> None:
    path = company.keytabs.get(keytab, tmp_path / keytab)
    broker = KerberosBroker(tmp_path / "logs", path, more)
    broker.launch()
    assert broker.wait() != 0
    assert said in broker.output_text()
    assert "Traceback" not in broker.output_text()


def test_a_broker_that_cannot_log_in_with_others_does_not_start(
    company: Company, tmp_path: Path
) -> None:
    keytab = company.realm.keytab("gone/localhost")
    company.realm.administer("delprinc -force gone/localhost")
    jaas = line(keytab, "gone/localhost")
    port = free_port()
    with ZooKeeperServer(tmp_path / "zookeeper") as zookeeper:
        broker = BrokerProcess(
            tmp_path / "logs",
            {
                "zookeeper.connect": zookeeper.connect(),
                "listeners": f"SASL_PLAINTEXT://localhost:{port}",
                "security.inter.broker.protocol": "SASL_PLAINTEXT",
                "sasl.kerberos.service.name": "kafka",
                "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": jaas,
            },
        )
        broker.launch()
        assert broker.wait() != 0
    said = f"by keytab {keytab}: Client 'gone/localhost@{NAME}' not found in Kerberos database"
    assert said in broker.output_text()
    assert "Traceback" not in broker.output_text()
