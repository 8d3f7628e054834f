"""Trees to files and back: what is refused, and what is warned of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from kafkapy.common.errors import ConfigError
from kafkapy.tools.zookeeper import shell, transfer, tree_writer
from kafkapy.tools.zookeeper.transfer import (
    export_from_directory,
    export_from_zookeeper,
    import_to_zookeeper,
)
from kafkapy.tools.zookeeper.tree_reader import TreeError, read_tree
from kafkapy.tools.zookeeper.tree_writer import make_root
from kafkapy.tools.zookeeper.znode_file import ZnodeFileError, read_znodes
from tests.harness.processes.own_zookeeper import OwnZooKeeper
from tests.harness.processes.waiting import LIMIT_S, wait_until

Connect = Callable[[str], KazooClient]


def fill(client: KazooClient) -> None:
    make_root(client)
    client.create("/brokers/ids", b"", makepath=True)
    for _ in range(3):
        client.create("/brokers/seq_", b"x", sequence=True)
    client.delete("/brokers/seq_0000000001")
    client.set("/brokers", b"three")


def test_to_a_file_and_back(
    tmp_path: Path, own_zookeeper: OwnZooKeeper, client_of: Connect
) -> None:
    fill(client_of("/from"))
    file = tmp_path / "znodes"
    warned: list[str] = []
    done = export_from_zookeeper(
        own_zookeeper.connect("/from"), {}, file, force=False, warn=warned.append
    )
    assert (done.znodes, done.ephemerals) == (5, 0)
    target = own_zookeeper.connect("/to/there")
    again = import_to_zookeeper(file, target, {}, overwrite=False, force=False, warn=warned.append)
    assert again == done
    assert read_tree(client_of("/to/there")).rows == read_tree(client_of("/from")).rows
    with pytest.raises(TreeError, match=f"{target} is not empty"):
        import_to_zookeeper(file, target, {}, overwrite=False, force=False, warn=warned.append)
    client_of("/to/there").set("/brokers", b"changed")
    import_to_zookeeper(file, target, {}, overwrite=True, force=False, warn=warned.append)
    assert client_of("/to/there").get("/brokers")[0] == b"three"
    assert warned == []


def test_registered_brokers(
    tmp_path: Path, own_zookeeper: OwnZooKeeper, client_of: Connect
) -> None:
    client = client_of("/live")
    fill(client)
    client.create("/brokers/ids/7", b"{}", ephemeral=True)
    source, file = own_zookeeper.connect("/live"), tmp_path / "znodes"
    warned: list[str] = []
    with pytest.raises(TreeError, match=r"Brokers are registered at .*: 7\. Stop them"):
        export_from_zookeeper(source, {}, file, force=False, warn=warned.append)
    assert not file.exists()
    done = export_from_zookeeper(source, {}, file, force=True, warn=warned.append)
    assert done.ephemerals == 1
    assert [row.path for row in read_znodes(file)][-1] == "/brokers/seq_0000000003"
    with pytest.raises(TreeError, match="Brokers are registered"):
        import_to_zookeeper(file, source, {}, overwrite=True, force=False, warn=warned.append)
    import_to_zookeeper(file, source, {}, overwrite=True, force=True, warn=warned.append)
    assert len(warned) == 2
    assert all(line.startswith("WARNING: Brokers are registered at") for line in warned)


def test_versions_that_are_not_kept_are_told(
    tmp_path: Path,
    own_zookeeper: OwnZooKeeper,
    client_of: Connect,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = client_of("/versions")
    make_root(client)
    for number in range(5):
        client.create(f"/n{number}")
        client.set(f"/n{number}", b"x")
    file = tmp_path / "znodes"
    warned: list[str] = []
    source = own_zookeeper.connect("/versions")
    export_from_zookeeper(source, {}, file, force=False, warn=warned.append)
    monkeypatch.setattr(tree_writer, "VERSION_MAX", 0)
    monkeypatch.setattr(transfer, "VERSION_MAX", 0)
    target = own_zookeeper.connect("/anew")
    import_to_zookeeper(file, target, {}, overwrite=False, force=False, warn=warned.append)
    assert warned == ["WARNING: versions above 0 are not kept: /n0, /n1, /n2 and 2 more"]


def test_a_damaged_file_changes_nothing(
    tmp_path: Path, own_zookeeper: OwnZooKeeper, client_of: Connect
) -> None:
    file = tmp_path / "znodes"
    fill(client_of("/good"))
    source = own_zookeeper.connect("/good")
    export_from_zookeeper(source, {}, file, force=False, warn=str)
    file.write_bytes(file.read_bytes().replace(b"three", b"seven"))
    target = own_zookeeper.connect("/untouched")
    with pytest.raises(ZnodeFileError, match="checksum"):
        import_to_zookeeper(file, target, {}, overwrite=False, force=False, warn=str)
    assert client_of("/untouched").exists("/") is None


def test_a_directory_has_the_same_as_its_server(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    by_client, by_directory = tmp_path / "one", tmp_path / "two"
    with OwnZooKeeper(data_dir) as server:
        client = KazooClient(server.bootstrap_servers)
        client.start()
        fill(client)
        client.stop()
        client.close()
        address = server.bootstrap_servers
        one = export_from_zookeeper(address, {}, by_client, force=False, warn=str)
        warned: list[str] = []
        with pytest.raises(ConfigError, match=f"A server runs on {data_dir}, with pid"):
            export_from_directory(data_dir, by_directory, force=False, warn=str)
        export_from_directory(data_dir, tmp_path / "live", force=True, warn=warned.append)
        assert warned[0].startswith("WARNING: A server runs on")
    two = export_from_directory(data_dir, by_directory, force=False, warn=str)
    assert one == two
    assert read_znodes(by_client) == read_znodes(by_directory)


def test_a_server_that_ends_between_two_requests_does_not_keep_the_command_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell, "CONNECT_LIMIT_S", 0.5)
    with OwnZooKeeper(tmp_path / "data") as server:

        def read(client: KazooClient) -> None:
            server.stop()
            wait_until(lambda: not client.connected, "the connection is lost")
            client.get_async("/").get(LIMIT_S)

        monkeypatch.setattr(transfer, "read_tree", read)
        with pytest.raises(TreeError, match="the connection broke: Connection"):
            export_from_zookeeper(server.connect(), {}, tmp_path / "x", force=False, warn=str)


def test_a_lost_connection_is_told(
    tmp_path: Path, own_zookeeper: OwnZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(client: KazooClient) -> None:
        client.stop()
        client.get("/")

    monkeypatch.setattr(transfer, "read_tree", read)
    with pytest.raises(TreeError, match="refused, or the connection broke"):
        export_from_zookeeper(own_zookeeper.connect(), {}, tmp_path / "x", force=False, warn=str)
