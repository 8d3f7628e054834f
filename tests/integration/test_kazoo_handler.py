"""TLS to a real ZooKeeper, Apache's and ours, and how kazoo's thread reads."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from kafkapy.zk.kazoo.adapter import KazooZooKeeper, ZooKeeperUnavailable
from kafkapy.zk.kazoo.client_config import ZooKeeperClientConfig
from kafkapy.zk.kazoo.handler import BufferedSocket, Handler
from kafkapy.zk.zookeeper import Get, Znode, ZooKeeperError
from tests.harness.cores.ensembles import run
from tests.harness.processes.broker_process import free_port
from tests.harness.processes.own_zookeeper import OwnZooKeeper
from tests.harness.processes.zookeeper_server import ZooKeeperServer
from tests.harness.scripted.cli import kafkapy
from tests.harness.security.certificates import can_make, make_identity

TLS = "TLS to ZooKeeper"


class SecureServer(NamedTuple):
    """Addresses of a ZooKeeper that takes TLS with client certificates, and the stores."""

    secure: str
    plain: str
    stores: Path


@pytest.fixture(scope="module", params=[ZooKeeperServer, OwnZooKeeper])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecureServer | None]:
    """None where certificates cannot be made."""
    if not can_make(TLS):
        yield None
        return
    stores = tmp_path_factory.mktemp("stores")
    for name in ("server", "client"):
        make_identity(stores, name)
    port = str(free_port())
    settings = {
        "secureClientPort": port,
        "secureClientPortAddress": "127.0.0.1",
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": str(stores / "server.pem"),
        "ssl.trustStore.location": str(stores / "client.pem"),
    }
    with request.param(tmp_path_factory.mktemp("zookeeper") / "data", settings) as process:
        yield SecureServer(f"127.0.0.1:{port}", process.bootstrap_servers, stores)


def client(server: SecureServer, **changes: str) -> KazooZooKeeper:
    settings = {
        "connect": f"{server.secure}/tls",
        "connection.timeout.ms": "20000",
        "ssl.client.enable": "true",
        "ssl.truststore.location": str(server.stores / "server.crt"),
        "ssl.keystore.location": str(server.stores / "client.pem"),
        "set.acl": "true",
    }
    settings |= {key.replace("_", "."): value for key, value in changes.items()}
    properties = {f"zookeeper.{key}": value for key, value in settings.items()}
    return KazooZooKeeper(ZooKeeperClientConfig.from_properties(properties))


async def _secrets_are_the_certificates(server: SecureServer) -> None:
    zk = client(server)
    await zk.connect()
    await zk.create("/config", b"")
    await zk.create("/config/users", b"secret")
    assert (await zk.get("/config/users")).data == b"secret"
    plain = {"connect": f"{server.plain}/tls", "ssl_client_enable": "false", "set_acl": "false"}
    stranger = client(server, **plain)
    await stranger.connect()
    with pytest.raises(ZooKeeperError, match="NoAuth"):
        await stranger.get("/config/users")
    await stranger.close()
    await zk.close()


def test_a_client_certificate_is_an_identity(server: SecureServer | None) -> None:
    if server is not None:
        run(_secrets_are_the_certificates(server))


async def _reads_many(server: SecureServer) -> None:
    zk = client(server, session_timeout_ms="60000")
    await zk.connect()
    await zk.create("/many", b"x" * 5000)
    async with asyncio.timeout(15):
        answers = await zk.pipeline([Get("/many")] * 500)
    assert all(isinstance(answer, Znode) for answer in answers)
    await zk.close()


def test_many_answers_in_one_tls_record_are_all_read(server: SecureServer | None) -> None:
    """Data that TLS has decrypted makes no socket readable: a wait would last until a ping."""
    if server is not None:
        run(_reads_many(server))


def test_commands_of_a_person_go_by_tls_too(server: SecureServer | None, tmp_path: Path) -> None:
    if server is None:
        return
    file = tmp_path / "tls.properties"
    file.write_text(
        "zookeeper.ssl.client.enable=true\n"
        f"zookeeper.ssl.truststore.location={server.stores / 'server.crt'}\n"
        f"zookeeper.ssl.keystore.location={server.stores / 'client.pem'}\n"
    )
    secure = (server.secure, "-zk-tls-config-file", str(file))
    made = kafkapy("zookeeper-shell", *secure, "create", "/brokers", "x", "auth::cdrwa")
    assert (made.stderr, made.status) == ("Created /brokers\n", 0)
    plain = kafkapy("zookeeper-shell", server.plain, "get", "/brokers")
    assert plain.stderr == "Authentication is not valid : /brokers\n"
    watched = b"get -w /brokers\nset /brokers y\nget /brokers\nquit\n"
    assert "y\n" in kafkapy("zookeeper-shell", *secure, stdin=watched).stdout
    user = ("configs", "--describe", "--entity-type", "users", "--entity-name", "u")
    words = ("--zookeeper", server.secure, "--zk-tls-config-file", str(file))
    shown = kafkapy(*user, *words)
    assert shown.stdout.endswith("Configs for user-principal 'u' are \n")
    assert shown.status == 0


async def _trusts_only_its_store(server: SecureServer) -> None:
    other = str(server.stores / "client.crt")
    zk = client(server, ssl_truststore_location=other, connection_timeout_ms="500")
    with pytest.raises(ZooKeeperUnavailable, match="certificate verify failed"):
        await zk.connect()


def test_a_server_that_is_not_trusted_gets_nothing(server: SecureServer | None) -> None:
    if server is not None:
        run(_trusts_only_its_store(server))


def test_without_a_certificate_nobody_is_served(server: SecureServer | None) -> None:
    """TLS 1.3 tells it after the client's handshake, so that a request must fail."""
    if server is None:
        return
    context = ssl.create_default_context(cafile=str(server.stores / "server.crt"))
    host, _, port = server.secure.rpartition(":")
    answer = b""
    with (
        suppress(OSError),
        socket.create_connection((host, int(port)), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        secure.sendall(b"srvr")
        answer = secure.recv(100)
    assert answer == b""


@pytest.fixture
def pair() -> Iterator[tuple[BufferedSocket, socket.socket]]:
    near, far = socket.socketpair()
    with near, far:
        yield BufferedSocket(near), far


def test_one_read_takes_all_and_hands_it_out(
    pair: tuple[BufferedSocket, socket.socket],
) -> None:
    near, far = pair
    handler = Handler(1.0, None)
    assert handler.select([near], [], [], 0) == ([], [], [])
    far.sendall(b"abcdef")
    assert handler.select([near], [], [], 10) == ([near], [], [])
    assert near.recv(2) == b"ab"
    assert near.pending() == 4
    assert handler.select([near], [], [], 0) == ([near], [], [])
    assert near.recv(100) == b"cdef"
    assert near.pending() == 0
    assert handler.select([near, far], [near], [], 0) == ([], [near], [])
    far.close()
    assert near.recv(1) == b""


def test_no_new_connection_after_giving_up() -> None:
    handler = Handler(1.0, None)
    handler.stop_connecting()
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(ConnectionAbortedError):
        handler.create_connection(listener.getsockname(), "localhost")
