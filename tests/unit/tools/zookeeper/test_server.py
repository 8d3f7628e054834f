"""The server as a process: clients that come, go, flood and do not read; a kill; a full disk."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import KazooException, NoNodeError

from kafkapy.tools.zookeeper.process import serves
from kafkapy.zk.wire.codes import OpCode
from kafkapy.zk.wire.connecting import CONNECT_REQUEST, ConnectRequest
from kafkapy.zk.wire.frames import encode_frame
from kafkapy.zk.wire.jute import encode
from kafkapy.zk.wire.records import Acl
from kafkapy.zk.wire.requests import CreateRequest, WatchedRequest, encode_request
from tests.harness.processes.own_zookeeper import OwnZooKeeper
from tests.harness.processes.waiting import wait_until

LIMIT_S = 60.0
HELLO = encode_frame(encode(CONNECT_REQUEST, ConnectRequest(0, 0, 30_000, 0, None, False)))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnZooKeeper]:
    with OwnZooKeeper(tmp_path_factory.mktemp("own") / "data") as process:
        yield process


@pytest.fixture
def clients(server: OwnZooKeeper) -> Iterator[list[KazooClient]]:
    with ExitStack() as stack:
        made = []
        for _ in range(2):
            client = KazooClient(server.bootstrap_servers, timeout=20)
            client.start(timeout=LIMIT_S)
            stack.callback(client.close)
            stack.callback(client.stop)
            made.append(client)
        yield made


def test_a_watch_of_one_client_hears_of_another(clients: list[KazooClient]) -> None:
    one, two = clients
    heard = threading.Event()
    one.exists("/watched", watch=lambda event: heard.set())
    two.create("/watched", b"x")
    assert heard.wait(LIMIT_S)
    assert one.get("/watched")[0] == b"x"


def test_kazoos_recipes(clients: list[KazooClient]) -> None:
    one, two = clients
    lock, rival = one.Lock("/lock", "one"), two.Lock("/lock", "two")
    assert lock.acquire(timeout=LIMIT_S)
    assert not rival.acquire(blocking=False)
    lock.release()
    assert rival.acquire(timeout=LIMIT_S)
    assert rival.contenders() == ["two"]
    rival.release()
    counter = one.Counter("/counter")
    counter += 2
    assert two.Counter("/counter").value == 2
    queue = one.Queue("/queue")
    queue.put(b"a")
    assert two.Queue("/queue").get() == b"a"
    one.ensure_path("/parents")
    full = threading.Event()

    @one.ChildrenWatch("/parents")  # type: ignore[untyped-decorator]
    def note(names: list[str]) -> None:
        if len(names) == 2:
            full.set()

    two.ensure_path("/parents/a")
    two.ensure_path("/parents/b")
    assert full.wait(LIMIT_S)


def test_the_session_of_a_client_that_dies_expires(
    server: OwnZooKeeper, clients: list[KazooClient]
) -> None:
    gone = threading.Event()
    hello = encode(CONNECT_REQUEST, ConnectRequest(0, 0, 1000, 0, None, False))
    ephemeral = CreateRequest("/dying", b"", (Acl(31, "world", "anyone"),), 1)
    with socket.create_connection(("127.0.0.1", server.port), LIMIT_S) as dying:
        dying.sendall(
            encode_frame(hello) + encode_frame(encode_request(1, OpCode.CREATE, ephemeral))
        )
        assert len(dying.makefile("rb").read(4 + 37)) == 41
        wait_until(lambda: clients[0].exists("/dying") is not None, "the ephemeral")
        assert clients[0].exists("/dying", watch=lambda event: gone.set())
    assert gone.wait(LIMIT_S)


def test_garbage_and_huge_lengths_are_closed(server: OwnZooKeeper) -> None:
    for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\x7f\xff\xff\xff", encode_frame(b"\0" * 20)):
        with socket.create_connection(("127.0.0.1", server.port), LIMIT_S) as client:
            client.sendall(garbage)
            assert client.recv(100) == b""
    assert serves("127.0.0.1", server.port)


def rss_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def test_a_client_that_does_not_read_costs_no_memory_and_no_turns(
    server: OwnZooKeeper, clients: list[KazooClient]
) -> None:
    """2000 replies of 500 KB would be 1 GB."""
    clients[0].create("/big", b"x" * 500_000)
    before = rss_kib(server.pid)
    request = encode_request(1, OpCode.GET_DATA, WatchedRequest("/big", False))
    with socket.create_connection(("127.0.0.1", server.port), LIMIT_S) as deaf:
        deaf.sendall(HELLO + encode_frame(request) * 2000)
        for number in range(50):
            clients[1].set("/big", b"%d" % number + b"x" * 500_000)
        assert rss_kib(server.pid) - before < 100_000


def test_acknowledged_writes_survive_kill_9(tmp_path: Path) -> None:
    with OwnZooKeeper(tmp_path / "data") as server:
        written: list[int] = []
        enough, killed = threading.Event(), threading.Event()

        def write(client: KazooClient, first: int) -> None:
            number = first
            try:
                while not killed.is_set():  # kazoo may send it after the start
                    client.create(f"/n{number}", b"%d" % number)
                    written.append(number)
                    number += 2
                    if len(written) > 100:
                        enough.set()
            except KazooException:
                return

        clients = [KazooClient(server.bootstrap_servers, timeout=20) for _ in range(2)]
        for client in clients:
            client.start(timeout=LIMIT_S)
        clients[0].create("/mine", b"", ephemeral=True)
        session_id, _ = clients[0].client_id
        threads = [
            threading.Thread(target=write, args=(client, first))
            for first, client in enumerate(clients)
        ]
        for thread in threads:
            thread.start()
        assert enough.wait(LIMIT_S)
        server.kill()
        killed.set()
        states: list[str] = []
        clients[0].add_listener(states.append)
        server.start()
        for thread in threads:  # one that began a write after the kill waits for the server
            thread.join(LIMIT_S)
        acknowledged = set(written)
        wait_until(lambda: all(client.connected for client in clients), "connected again")
        names = clients[1].retry(clients[1].get_children, "/")
        found = {int(name[1:]) for name in names if name[1:].isdigit()}
        assert acknowledged <= found
        assert len(found - acknowledged) <= 2, "at most one of each client was not answered"
        assert clients[0].client_id[0] == session_id, "the session goes on"
        assert KazooState.LOST not in states
        assert clients[0].get("/mine")[1].ephemeralOwner == session_id
        clients[0].stop()
        with pytest.raises(NoNodeError):
            clients[1].get("/mine")
        clients[1].stop()
        for client in clients:
            client.close()
        assert server.stop() == 0


def test_one_address_has_so_many_connections(tmp_path: Path) -> None:
    with OwnZooKeeper(tmp_path / "data", {"maxClientCnxns": "1"}) as server:

        def answer() -> bytes:
            with socket.create_connection(("127.0.0.1", server.port), LIMIT_S) as client:
                try:
                    client.sendall(b"srvr")
                    return client.recv(100)
                except ConnectionError:
                    return b""

        with socket.create_connection(("127.0.0.1", server.port), LIMIT_S) as first:
            first.sendall(HELLO)
            assert len(first.recv(100)) == 41
            assert answer() == b""
        wait_until(
            lambda: answer().startswith(b"Zookeeper version:"), "the place of the first is free"
        )
