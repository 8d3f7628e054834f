"""TLS stores changed while a broker runs, and what it tells of logins.

What a user would lose: a certificate that runs out cannot be replaced without a restart, or a
mistyped path takes a listener away.
"""

from __future__ import annotations

import shutil
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.client.cluster import Cluster
from kafkapy.common.errors import ApiError
from tests.harness.processes import apache_kafka
from tests.harness.processes.broker_process import API_VERSIONS_V0, free_port
from tests.harness.processes.scraped import samples_of
from tests.harness.processes.waiting import LIMIT_S, wait_until
from tests.harness.scripted.cli import kafkapy
from tests.harness.security.certificates import can_make, make_identity
from tests.harness.security.secure_broker import PASSWORD, SecureBroker, Way

KEYSTORE = "listener.name.{}.ssl.keystore.location"
TRUSTSTORE = "listener.name.{}.ssl.truststore.location"


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[SecureBroker | None]:
    if not can_make("TLS stores that change"):
        yield None
        return
    with SecureBroker(tmp_path / "broker") as broker:
        yield broker
    assert "Traceback" not in broker.output_text()


def another(directory: Path, name: str) -> Path:
    """A new key and certificate for the same name, of an authority of its own."""
    directory.mkdir()
    return make_identity(directory, name)


def alter(secure: SecureBroker, *change: str) -> tuple[int, str]:
    """Change the broker's own configs; the exit status, and what was said."""
    words = ("--bootstrap-server", secure.bootstrap_servers, "--entity-type", "brokers")
    done = kafkapy("configs", *words, "--entity-name", "0", "--alter", *change)
    return done.status, done.stdout + done.stderr


def set_store(secure: SecureBroker, key: str, store: Path) -> None:
    status, said = alter(secure, "--add-config", f"{key}={store}")
    assert (status, said) == (0, "Completed updating config for broker 0.\n")


def trusting(identity: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(identity.with_suffix(".crt")))


def connect(port: int, context: ssl.SSLContext) -> ssl.SSLSocket:
    plain = socket.create_connection(("127.0.0.1", port), LIMIT_S)
    try:
        return context.wrap_socket(plain, server_hostname="localhost")
    except BaseException:
        plain.close()
        raise


def is_served(connection: ssl.SSLSocket) -> bool:
    connection.sendall(API_VERSIONS_V0)
    with connection.makefile("rb") as stream:
        head = stream.read(4)
        return len(head) == 4 and len(stream.read(int.from_bytes(head, "big"))) > 0


def test_new_connections_get_the_new_certificate(
    secure: SecureBroker | None, tmp_path: Path
) -> None:
    if secure is None:
        return
    port, new = secure.port_of("TLS"), another(tmp_path / "new", "broker")
    with connect(port, trusting(secure.identity)) as old_connection:
        set_store(secure, KEYSTORE.format("tls"), new)
        with connect(port, trusting(new)) as connection:
            assert is_served(connection)
        with pytest.raises(ssl.SSLCertVerificationError):
            connect(port, trusting(secure.identity))
        assert is_served(old_connection)
        with connect(secure.port_of("MUTUAL"), trusting(secure.identity)):
            pass  # another listener keeps its own
    # The config is the broker's, and not the process's.
    assert secure.stop(LIMIT_S) == 0
    secure.start()
    with connect(port, trusting(new)) as connection:
        assert is_served(connection)
    status, said = alter(secure, "--delete-config", KEYSTORE.format("tls"))
    assert status == 0, said
    with connect(port, trusting(secure.identity)) as connection:
        assert is_served(connection)


def test_the_same_path_again_reads_the_file_again(
    secure: SecureBroker | None, tmp_path: Path
) -> None:
    if secure is None:
        return
    port, new = secure.port_of("TLS"), another(tmp_path / "new", "broker")
    old = trusting(secure.identity)
    shutil.copy(new, secure.identity)
    with connect(port, old) as connection:
        assert is_served(connection)
    set_store(secure, KEYSTORE.format("tls"), secure.identity)
    with connect(port, trusting(new)) as connection:
        assert is_served(connection)


def test_who_may_come_in_changes_too(secure: SecureBroker | None, tmp_path: Path) -> None:
    if secure is None:
        return
    client, port = another(tmp_path / "new", "newcomer"), secure.port_of("MUTUAL")
    context = trusting(secure.identity)
    context.load_cert_chain(client)

    def comes_in() -> bool:
        try:
            with connect(port, context) as connection:
                return is_served(connection)
        except OSError:
            return False

    assert not comes_in()
    set_store(secure, TRUSTSTORE.format("mutual"), client.with_suffix(".crt"))
    assert comes_in()


def test_bad_stores_are_refused_in_one_line(secure: SecureBroker | None, tmp_path: Path) -> None:
    if secure is None:
        return
    port, other = secure.port_of("TLS"), another(tmp_path / "new", "somebody")
    bad = tmp_path / "bad.pem"
    bad.write_text("nothing")
    for key, store, expected in (
        ("keystore", tmp_path / "none.pem", "none.pem cannot be used: No such file"),
        ("keystore", bad, "bad.pem cannot be used: no key and certificate in PEM form"),
        ("truststore", bad, "bad.pem cannot be used: "),
        ("keystore", other, "somebody.pem is a certificate of CN=somebody, and not of CN=broker"),
    ):
        name = f"listener.name.tls.ssl.{key}.location"
        status, said = alter(secure, "--add-config", f"{name}={store}")
        assert status != 0
        [line] = said.strip().splitlines()
        assert f"listener TLS (SSL): {name}=" in line
        assert expected in line
    with connect(port, trusting(secure.identity)) as connection:
        assert is_served(connection)


def test_what_else_a_listener_has_changes_when_the_broker_restarts(
    secure: SecureBroker | None,
) -> None:
    """It is accepted by itself, as by Apache Kafka, and not with a config of all listeners."""
    if secure is None:
        return
    name = "listener.name.tls.ssl.client.auth"
    status, said = alter(secure, "--add-config", f"{name}=required,ssl.client.auth=none")
    assert status != 0
    assert "cannot be updated dynamically for existing listener TLS" in said
    status, said = alter(secure, "--add-config", f"{name}=required")
    assert status == 0, said
    with connect(secure.port_of("TLS"), trusting(secure.identity)) as connection:
        assert is_served(connection)
    assert alter(secure, "--delete-config", name)[0] == 0


def test_logins_are_counted(tmp_path: Path) -> None:
    if not can_make("metrics of logins"):
        return
    way, metrics = Way("BOTH", "PLAIN"), free_port()
    secure = SecureBroker(tmp_path, {"kafkapy.metrics.port": str(metrics)})
    with secure, Cluster(secure.servers(way), secure.java(way)) as cluster:
        cluster.metadata([])
        wrong = Cluster(secure.servers(way), secure.java(way, PASSWORD + "x"))
        with wrong, pytest.raises(ApiError):
            wrong.metadata([])
        with pytest.raises(ssl.SSLCertVerificationError):
            connect(secure.port_of("TLS"), ssl.create_default_context())
        prefix = "server_socketservermetrics_"

        def are_counted() -> bool:
            found = samples_of(metrics)
            both = "listener=BOTH mechanism=PLAIN"
            return (
                found.get(f"{prefix}successful_authentication_total {both}", 0) >= 1
                and found.get(f"{prefix}failed_authentication_total {both}", 0) >= 1
                and found.get(f"{prefix}failed_authentication_total listener=TLS mechanism=SSL")
                == 1
                and found[f"{prefix}connection_count listener=BOTH"] == 1
            )

        wait_until(are_counted, "the logins in the metrics")


if apache_kafka.installed():

    def test_apache_kafkas_configs_change_a_store(
        secure: SecureBroker | None, tmp_path: Path
    ) -> None:
        if secure is None:
            return
        new, name = another(tmp_path / "new", "broker"), KEYSTORE.format("tls")
        words = ("--bootstrap-server", secure.bootstrap_servers, "--entity-type", "brokers")
        change = ("--entity-name", "0", "--alter", "--add-config")
        done = apache_kafka.run_tool("kafka.admin.ConfigCommand", *words, *change, f"{name}={new}")
        assert done.stdout == b"Completed updating config for broker 0.\n", done.stderr.decode()
        with connect(secure.port_of("TLS"), trusting(new)) as connection:
            assert is_served(connection)
