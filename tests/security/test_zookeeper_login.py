"""Logins to a real ZooKeeper, Apache's and ours: SASL DIGEST-MD5 as a JAAS line, and `digest`
credentials."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkapy.zk.kazoo.adapter import KazooZooKeeper, ZooKeeperAuthFailed
from kafkapy.zk.kazoo.client_config import AUTH, SASL_LOGIN, ZooKeeperClientConfig
from kafkapy.zk.zookeeper import ZooKeeperError
from tests.harness.cores.ensembles import run
from tests.harness.processes.own_zookeeper import OwnZooKeeper
from tests.harness.processes.zookeeper_server import ZooKeeperServer

MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"


@pytest.fixture(scope="module", params=[ZooKeeperServer, OwnZooKeeper])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ZooKeeperServer]:
    """It knows the user `kafka` with the password `secret`."""
    directory = tmp_path_factory.mktemp("zookeeper")
    jaas = directory / "jaas.conf"
    jaas.write_text(f'Server {{ {MODULE} required user_kafka="secret"; }};\n')
    settings = {"authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAFKA_OPTS", f"-Djava.security.auth.login.config={jaas}")
        process: ZooKeeperServer = request.param(directory / "data", settings).start()
    yield process
    process.stop()


def client(server: ZooKeeperServer, **settings: str) -> KazooZooKeeper:
    properties = {
        "zookeeper.connect": server.connect(),
        "zookeeper.connection.timeout.ms": "30000",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    return KazooZooKeeper(ZooKeeperClientConfig.from_properties(properties))


def login(password: str) -> dict[str, str]:
    return {SASL_LOGIN: f'{MODULE} required username="kafka" password="{password}";'}


def test_a_login_owns_what_it_makes(server: ZooKeeperServer) -> None:
    async def test() -> None:
        owner = client(server, **login("secret"), zookeeper_set_acl="true")
        await owner.connect()
        await owner.create("/config", b"")
        await owner.create("/config/users", b"")
        await owner.create("/config/users/alice", b"salted")
        assert (await owner.get("/config/users/alice")).data == b"salted"
        nobody = client(server)
        await nobody.connect()
        with pytest.raises(ZooKeeperError, match="NoAuth"):
            await nobody.get("/config/users/alice")
        with pytest.raises(ZooKeeperError, match="NoAuth"):
            await nobody.create("/config/x", b"")
        await nobody.close()
        await owner.close()

    run(test())


def test_a_wrong_password_is_refused_and_said(server: ZooKeeperServer) -> None:
    async def test() -> None:
        with pytest.raises(ZooKeeperAuthFailed, match=f"{server.port} refused the login"):
            await client(server, **login("wrong")).connect()

    run(test())


def test_credentials_of_a_scheme_are_passed_on(server: ZooKeeperServer) -> None:
    async def test() -> None:
        owner = client(server, **{AUTH: "digest:kafka:secret"}, zookeeper_set_acl="true")
        await owner.connect()
        await owner.create("/brokers", b"")
        other = client(server, **{AUTH: "digest:kafka:other"})
        await other.connect()
        with pytest.raises(ZooKeeperError, match="NoAuth"):
            await other.create("/brokers/ids", b"")
        await other.close()
        await owner.create("/brokers/ids", b"")
        await owner.close()

    run(test())
