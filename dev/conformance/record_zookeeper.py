"""Records conversations with Apache ZooKeeper, for `tests/unit/zk/service/test_conversations.py`.

Three clients send requests to a new server through a proxy that records every frame: kazoo, a
broker of Apache Kafka 3.9, and a client that sends each request of the protocol, invalid ones too.

    python -m dev.conformance.record_zookeeper [kazoo|kafka|requests ...]
"""

from __future__ import annotations

import json
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.security import CREATOR_ALL_ACL, make_digest_acl

from dev.report import ROOT
from kafkapy.zk.wire.frames import FrameDecoder
from tests.harness.cores import zookeeper_conversation
from tests.harness.processes import apache_kafka
from tests.harness.processes.zookeeper_server import ZooKeeperServer

FOLDER = ROOT / "tests" / "data" / "zookeeper"


class Recorder:
    """A proxy in front of a server. `rows` is [connection, "client" or "server", hex frame]."""

    def __init__(self, port: int) -> None:
        self._server_port = port
        self._lock = threading.Lock()
        self._count = 0
        self.rows: list[tuple[int, str, str]] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._server_port))
            number, self._count = self._count, self._count + 1
            for source, sink, sender in ((client, server, "client"), (server, client, "server")):
                words = (number, source, sink, sender)
                threading.Thread(target=self._pass_on, args=words, daemon=True).start()

    def _pass_on(
        self, number: int, source: socket.socket, sink: socket.socket, sender: str
    ) -> None:
        cutter = FrameDecoder(1 << 30)
        try:
            while data := source.recv(65536):
                cutter.feed(data)
                with self._lock:
                    for frame in iter(cutter.next_frame, None):
                        self.rows.append((number, sender, frame.hex()))
                sink.sendall(data)
            with self._lock:
                self.rows.append((number, sender, "end"))
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return


@contextmanager
def recorder() -> Iterator[Recorder]:
    with tempfile.TemporaryDirectory() as directory:
        settings = {"zookeeper.4lw.commands.whitelist": "*", "tickTime": "3000"}
        limits = {"minSessionTimeout": "6000", "maxSessionTimeout": "60000"}
        with ZooKeeperServer(Path(directory) / "data", settings | limits) as server:
            made = Recorder(server.port)
            yield made
            made.close()


def exchange_with_kazoo(port: int) -> None:
    """Send the requests of kazoo's recipes and of our stores, one after the other."""
    one, two = (KazooClient(f"127.0.0.1:{port}", timeout=30) for _ in range(2))
    one.start()
    two.start()
    for act in _acts(one, two):
        try:
            act()
        except KazooException:
            continue
    one.stop()
    two.stop()


def _acts(one: KazooClient, two: KazooClient) -> Iterator[Callable[[], object]]:
    events: list[object] = []
    yield lambda: one.create("/a", b"1")
    yield lambda: one.create("/a", b"1")
    yield lambda: one.create("/no/where", b"")
    yield lambda: one.create("/empty", b"")
    yield lambda: one.get("/a", watch=events.append)
    yield lambda: two.set("/a", b"2", version=0)
    yield lambda: two.set("/a", b"3", version=0)
    yield lambda: one.exists("/later", watch=events.append)
    yield lambda: one.get_children("/a", watch=events.append, include_data=True)
    yield lambda: two.create("/later", b"", ephemeral=True)
    yield lambda: two.create("/later/child", b"")
    for _ in range(3):
        yield lambda: two.create("/a/s-", b"s", sequence=True, include_data=True)
    yield lambda: two.create("/a/e-", b"e", sequence=True, ephemeral=True)
    yield lambda: two.delete("/a")
    yield lambda: two.delete("/a/s-0000000001", version=4)
    yield lambda: two.delete("/a/s-0000000001", version=0)
    yield lambda: one.get_children("/a", include_data=True)
    yield lambda: one.sync("/a")
    good = one.transaction()
    good.create("/m", b"x")
    good.create("/m/s-", b"", sequence=True)
    good.set_data("/m", b"y", version=0)
    good.check("/m", 1)
    good.delete("/m/s-0000000000")
    yield good.commit
    bad = one.transaction()
    bad.create("/n")
    bad.check("/m", 7)
    bad.delete("/a")
    yield bad.commit
    yield lambda: one.add_auth("digest", "user:secret")
    yield lambda: one.create("/mine", b"s", acl=CREATOR_ALL_ACL)
    yield lambda: one.get_acls("/mine")
    yield lambda: two.get("/mine")
    yield lambda: two.set_acls("/mine", [make_digest_acl("other", "x", all=True)])
    yield lambda: one.set_acls("/mine", [make_digest_acl("user", "secret", read=True)], version=0)
    yield lambda: one.set("/mine", b"t")
    yield lambda: one.get("/mine")
    yield lambda: two.delete("/later")
    yield lambda: two.create("/gone", b"", ephemeral=True)
    yield lambda: one.get("/gone", watch=events.append)
    yield two.stop
    yield lambda: one.exists("/gone")


def exchange_with_kafka(port: int) -> None:
    """Start a broker of Apache Kafka, create a topic, and stop the broker."""
    with tempfile.TemporaryDirectory() as directory:
        log_dir = Path(directory) / "kafka"
        overrides = {"zookeeper.connect": f"127.0.0.1:{port}"}

        class At:
            bootstrap_servers = f"127.0.0.1:{port}"

        zookeeper: Any = At()
        with apache_kafka.ApacheBroker(log_dir, overrides, zookeeper) as broker:
            words = ("--create", "--topic", "t", "--partitions", "3")
            where = ("--bootstrap-server", broker.bootstrap_servers)
            done = apache_kafka.run_tool(apache_kafka.TOPICS, *where, *words)
            assert done.returncode == 0, done.stderr
            broker.stop()


def exchange_all_requests(port: int) -> None:
    """Send the requests of `zookeeper_conversation`, each after the answer to the last."""
    zookeeper_conversation.send_all(port)


EXCHANGES = {
    "kazoo": exchange_with_kazoo,
    "kafka": exchange_with_kafka,
    "requests": exchange_all_requests,
}


def main(names: list[str]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in names or EXCHANGES:
        with recorder() as proxy:
            EXCHANGES[name](proxy.port)
            rows = [json.dumps(row) for row in proxy.rows]
        (FOLDER / f"{name}.json").write_text("[\n" + ",\n".join(rows) + "\n]\n")
        print(f"{name}: {len(rows)} frames")


if __name__ == "__main__":
    main(sys.argv[1:])
