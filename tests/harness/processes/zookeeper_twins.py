"""The same random operations on two ZooKeeper servers, through kazoo, and their outcomes."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import KazooException
from kazoo.protocol.states import EventType, WatchedEvent, ZnodeStat
from kazoo.security import make_acl, make_digest_acl

from tests.harness.processes.zookeeper_server import ZooKeeperServer

LIMIT_S = 60.0
PATIENT = {"max_tries": -1, "delay": 0.1, "max_delay": 0.5}
PATHS = ("/a", "/a", "/a", "/a/b", "/a/b", "/a/b/c", "/e", "/e/f")
ACLS = (
    None,
    [make_acl("world", "anyone", read=True, create=True)],
    [make_digest_acl("user", "secret", all=True)],
    [make_acl("auth", "", all=True)],
    [make_acl("ip", "127.0.0.1", read=True, write=True)],
    [make_acl("digest", "broken", all=True)],
)
Step = tuple[str, int, tuple[Any, ...]]


def steps(seed: int, count: int, *, clients: int = 3, kills: bool = False) -> list[Step]:
    """Random operations in their order: (operation, client, arguments)."""
    chance = random.Random(seed)
    weights = {
        "create": 8,
        "delete": 5,
        "set": 5,
        "get": 3,
        "exists": 3,
        "children": 3,
        "multi": 3,
        "set_acls": 2,
        "get_acls": 2,
        "restart": 1,
        "ephemerals": 1,
        "reconnect": 1,
    }
    kinds = chance.choices(list(weights), list(weights.values()), k=count)
    found = [(kind, chance.randrange(clients), _arguments(kind, chance)) for kind in kinds]
    if kills:
        found[count // 2] = ("kill", 0, ("", False))
    return found


def _arguments(kind: str, chance: random.Random) -> tuple[Any, ...]:
    path, version = chance.choice(PATHS), chance.choice((-1, -1, 0, 1, 2))
    match kind:
        case "create":
            flags = (chance.random() < 0.15, chance.random() < 0.15)
            return (path, chance.randbytes(3), chance.choice((*[None] * 8, *ACLS)), *flags)
        case "set":
            return path, chance.choice((None, b"", b"data")), version
        case "delete":
            return path, version
        case "set_acls":
            return path, chance.choice(ACLS[1:]), version
        case "multi":
            parts = ("create", "delete", "set", "check")
            chosen = chance.choices(parts, k=chance.randrange(1, 4))
            return tuple((part, chance.choice(PATHS), version) for part in chosen)
        case _:
            return path, chance.random() < 0.7


class Twin:
    """Clients of one server below a root of their own; the second is authenticated.

    No outcome and no event contains the root. `has_lost_sessions`: a session ended when the server
    was killed.
    """

    def __init__(self, server: ZooKeeperServer, root: str, clients: int) -> None:
        self._server = server
        self._root = root
        self._clients = [self._client(number) for number in range(clients)]
        self._clients[0].create(root, b"")
        self._base = self._clients[0].exists(root).czxid
        self.has_lost_sessions = False
        self.outcomes: list[Any] = []
        self.events: dict[int, list[Any]] = {number: [] for number in range(clients)}

    def close(self) -> None:
        for client in self._clients:
            client.stop()
            client.close()

    def run(self, todo: list[Step]) -> None:
        """Do the steps; `outcomes` and `events` get the results."""
        for kind, number, arguments in todo:
            client = self._clients[number]
            try:
                found = self._do(kind, client, number, arguments)
            except KazooException as error:
                found = type(error).__name__
            self.outcomes.append((kind, number, arguments, self._plain(found)))
            self._settle()

    def _sessions(self) -> list[int]:
        return [client.client_id[0] for client in self._clients]

    def _do(self, kind: str, client: KazooClient, number: int, words: tuple[Any, ...]) -> Any:
        path = self._root + str(words[0]) if kind not in ("multi", "restart") else ""
        watch = self._watch(number) if words[1:] and words[1] is True else None
        match kind:
            case "create":
                _, data, acl, ephemeral, sequence = words
                return client.create(path, data, acl, ephemeral, sequence, include_data=True)
            case "delete":
                return client.delete(path, words[1])
            case "set":
                return client.set(path, words[1], words[2])
            case "get":
                return client.get(path, watch)
            case "exists":
                return client.exists(path, watch)
            case "children":
                return client.get_children(path, watch, include_data=True)
            case "set_acls":
                return client.set_acls(path, words[1], words[2])
            case "get_acls":
                return client.get_acls(path)
            case "multi":
                return self._multi(client, words)
            case "restart":
                client.stop()
                client.close()
                self._clients[number] = self._client(number)
            case "reconnect":
                self._lose_connection(client)
            case "kill":
                sessions = self._sessions()
                self._server.kill()
                self._server.start()
                self._settle()
                self.has_lost_sessions = self._sessions() != sessions
        return None

    def _lose_connection(self, client: KazooClient) -> None:
        """Break the connection; the session continues on another one."""
        lost = threading.Event()
        client.add_listener(lambda state: lost.set() if state == KazooState.SUSPENDED else None)
        client._connection._socket.shutdown(socket.SHUT_RDWR)
        assert lost.wait(LIMIT_S)

    def _multi(self, client: KazooClient, parts: tuple[Any, ...]) -> list[Any]:
        transaction = client.transaction()
        for part, path, version in parts:
            match part:
                case "create":
                    transaction.create(self._root + path, b"m")
                case "delete":
                    transaction.delete(self._root + path, version)
                case "set":
                    transaction.set_data(self._root + path, b"multi", version)
                case "check":
                    transaction.check(self._root + path, version)
        return [
            type(each).__name__ if isinstance(each, Exception) else each
            for each in transaction.commit()
        ]

    def _client(self, number: int) -> KazooClient:
        address = self._server.bootstrap_servers
        patient = {"connection_retry": dict(PATIENT), "command_retry": dict(PATIENT)}
        client = KazooClient(address, timeout=20, **patient)
        client.start(timeout=LIMIT_S)
        if number == 1:
            client.add_auth("digest", "user:secret")
        return client

    def _watch(self, number: int) -> Any:
        def on_event(event: WatchedEvent) -> None:
            # A client that is being closed may get the event of its session's end before the end.
            if event.type != EventType.NONE:
                self.events[number].append((event.type, self._plain(event.path)))

        return on_event

    def _settle(self) -> None:
        """Wait until each client has received its events."""
        for client in self._clients:
            client.retry(client.exists, "/")
            is_delivered = threading.Event()
            client.handler.callback_queue.put(is_delivered.set)
            assert is_delivered.wait(LIMIT_S)

    def _plain(self, found: Any) -> Any:
        if isinstance(found, ZnodeStat):
            owners = {0: "nobody"} | {
                client.client_id[0]: number for number, client in enumerate(self._clients)
            }
            zxids = (found.czxid, found.mzxid, found.pzxid)
            return (
                *(zxid - self._base for zxid in zxids),
                *(found.version, found.cversion, found.aversion),
                *(owners.get(found.ephemeralOwner, "gone"), found.dataLength, found.numChildren),
            )
        if isinstance(found, str):
            return found.removeprefix(self._root)
        if isinstance(found, list):
            return sorted(map(self._plain, found), key=str)
        return tuple(map(self._plain, found)) if isinstance(found, tuple) else found


@contextmanager
def twin(server: ZooKeeperServer, root: str, clients: int = 3) -> Iterator[Twin]:
    """A twin that is closed at the end."""
    made = Twin(server, root, clients)
    try:
        yield made
    finally:
        made.close()


def twins(
    apaches: ZooKeeperServer, own: ZooKeeperServer, seed: int, clients: int, todo: list[Step]
) -> tuple[Twin, Twin]:
    """Run the same steps on both servers.

    A client that connects to Apache's server while that starts may get no answer and lose its
    session. Then the run on Apache's server is repeated.
    """

    def done_by(server: ZooKeeperServer, root: str) -> Twin:
        with twin(server, f"{root}-{seed}", clients) as each:
            each.run(todo)
        return each

    theirs = done_by(apaches, "/twin")
    if theirs.has_lost_sessions:
        theirs = done_by(apaches, "/second-twin")
    return theirs, done_by(own, "/twin")
