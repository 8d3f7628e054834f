"""The loads of `scripts/bench --zookeeper`: sessions that write, read and watch.

All sessions of a load are sockets of one process, each with one request at a time: with clients of
kazoo, the clients would be the limit, and not the server.
"""

from __future__ import annotations

import itertools
import selectors
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from threading import Event
from typing import Final, NamedTuple

from kafkapy.zk.wire.codes import NOTIFICATION_XID, OpCode
from kafkapy.zk.wire.connecting import CONNECT_REQUEST, ConnectRequest
from kafkapy.zk.wire.frames import FrameDecoder, encode_frame
from kafkapy.zk.wire.jute import Reader, encode
from kafkapy.zk.wire.records import Acl
from kafkapy.zk.wire.replies import HEADER
from kafkapy.zk.wire.requests import (
    CreateRequest,
    EmptyRequest,
    Request,
    SetDataRequest,
    VersionRequest,
    WatchedRequest,
    encode_request,
)

LIMIT_S: Final = 120.0
SESSION_TIMEOUT_MS: Final = 60_000
DATA: Final = b"x" * 100
OPEN: Final = (Acl(31, "world", "anyone"),)
_IN_FLIGHT: Final = 500  # requests of a session that does not wait for each reply
_RECEIVED_BYTES: Final = 1 << 16

OpRequest = tuple[OpCode, Request]


class Refused(Exception):
    """A request got an error, or its connection has ended."""


class Session:
    """A session, which sends requests and receives replies. It sends no pings: no load is as long
    as its timeout."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), LIMIT_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._frames = FrameDecoder()
        self._last_xid = 0
        hello = ConnectRequest(0, 0, SESSION_TIMEOUT_MS, 0, None, False)
        self._socket.sendall(encode_frame(encode(CONNECT_REQUEST, hello)))
        self._arrived()

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, op: OpCode, body: Request) -> None:
        """Send a request."""
        self._last_xid += 1
        self._socket.sendall(encode_frame(encode_request(self._last_xid, op, body)))

    def take(self) -> list[int]:
        """Wait for a frame. Returns the numbers of the answered requests, -1 for a notification.

        Raises:
            Refused: a reply has an error.
        """
        numbers = []
        for frame in self._arrived():
            header = HEADER.read(Reader(frame))
            if header.error:
                raise Refused(f"error {header.error}")
            numbers.append(header.xid)
        return numbers

    def ask(self, op: OpCode, body: Request) -> None:
        """Send a request, and wait for its reply."""
        self.send(op, body)
        while self._last_xid not in self.take():
            pass

    def ask_all(self, requests: Sequence[OpRequest]) -> None:
        """Send all requests, many of them in flight, and wait for the replies."""
        answered, waiting = 0, iter(requests)
        for asked in itertools.islice(waiting, _IN_FLIGHT):
            self.send(*asked)
        while answered < len(requests):
            replies = self.take()
            answered += len(replies)
            for asked in itertools.islice(waiting, len(replies)):
                self.send(*asked)

    def close(self) -> None:
        """End the session."""
        self.ask(OpCode.CLOSE_SESSION, EmptyRequest())
        self._socket.close()

    def _arrived(self) -> list[bytes]:
        frames: list[bytes] = []
        while not frames:
            data = self._socket.recv(_RECEIVED_BYTES)
            if not data:
                raise Refused("the server has closed the connection")
            self._frames.feed(data)
            frames += iter(self._frames.next_frame, None)
        return frames


@contextmanager
def sessions_on(port: int, count: int) -> Iterator[list[Session]]:
    """Open `count` sessions, and close them at the end."""
    with ExitStack() as ends:
        sessions = []
        for _ in range(count):
            session = Session(port)
            ends.callback(session.close)
            sessions.append(session)
        yield sessions


def rate(
    sessions: Sequence[Session], request: Callable[[int, int], OpRequest], seconds: float
) -> float:
    """Requests/s of all sessions together.

    `request` gets the number of a session and the number of requests that this session has sent,
    and returns the session's next request.
    """
    sent = [0] * len(sessions)

    def send(number: int) -> None:
        sessions[number].send(*request(number, sent[number]))
        sent[number] += 1

    answered, passed = 0, 0.0
    with selectors.DefaultSelector() as selector:
        for number, session in enumerate(sessions):
            selector.register(session, selectors.EVENT_READ, number)
        started = time.perf_counter()
        for number in range(len(sessions)):
            send(number)
        while passed < seconds:
            for key, _ in selector.select(LIMIT_S):
                answered += len(sessions[key.data].take())
                send(key.data)
            passed = time.perf_counter() - started
    for session in sessions:
        session.take()
    return answered / passed


def creates(port: int, sessions: int, seconds: float) -> float:
    """Creates/s of nodes, below one node for each session. They are deleted afterwards."""
    made: list[str] = []

    def create(session: int, number: int) -> OpRequest:
        made.append(f"/s{session}/{number}")
        return OpCode.CREATE, CreateRequest(made[-1], DATA, OPEN, 0)

    with sessions_on(port, sessions) as clients, _own_nodes(clients):
        found = rate(clients, create, seconds)
        clients[0].ask_all([(OpCode.DELETE, VersionRequest(path, -1)) for path in made])
    return found


def conditional_sets(port: int, sessions: int, seconds: float) -> float:
    """Conditional sets/s of nodes, at their current versions."""

    def set_data(session: int, number: int) -> OpRequest:
        return OpCode.SET_DATA, SetDataRequest(f"/s{session}", DATA, number)

    with sessions_on(port, sessions) as clients, _own_nodes(clients):
        return rate(clients, set_data, seconds)


def reads(port: int, sessions: int, seconds: float) -> float:
    """Reads/s of nodes."""

    def get_data(session: int, _number: int) -> OpRequest:
        return OpCode.GET_DATA, WatchedRequest(f"/s{session}", False)

    with sessions_on(port, sessions) as clients, _own_nodes(clients):
        return rate(clients, get_data, seconds)


def fan_out_ms(port: int, sessions: int, rounds: int) -> float:
    """Mean time in ms from a change of a node until all sessions that watch it are notified."""
    passed = 0.0
    with sessions_on(port, sessions + 1) as clients, _own_nodes(clients[:1]):
        writer, *watchers = clients
        for number in range(rounds):
            for watcher in watchers:
                watcher.ask(OpCode.GET_DATA, WatchedRequest("/s0", True))
            started = time.perf_counter()
            writer.send(OpCode.SET_DATA, SetDataRequest("/s0", DATA, number))
            for watcher in watchers:
                assert watcher.take() == [NOTIFICATION_XID], "something else than the event"
            passed += time.perf_counter() - started
            writer.take()
    return passed / rounds * 1000


class FilledTree(NamedTuple):
    """The time to create nodes, and the longest that a read of another session took meanwhile."""

    seconds: float
    longest_read_ms: float


def fill(port: int, nodes: int) -> FilledTree:
    """Create `nodes` nodes in one session, 1,000 below each parent."""
    with ThreadPoolExecutor(1) as threads, sessions_on(port, 2) as [client, reader]:
        is_over = Event()
        longest_ms = threads.submit(_longest_read_ms, reader, is_over)
        try:
            seconds = _created(client, nodes)
        finally:
            is_over.set()
        return FilledTree(seconds, longest_ms.result())


def _longest_read_ms(session: Session, is_over: Event) -> float:
    longest = 0.0
    while not is_over.wait(0.002):
        started = time.perf_counter()
        session.ask(OpCode.GET_DATA, WatchedRequest("/", False))
        longest = max(longest, time.perf_counter() - started)
    return longest * 1000


def _created(client: Session, nodes: int) -> float:
    parents = [f"/p{number}" for number in range(0, nodes, 1000)]
    children = [f"{path}/{number}" for path in parents for number in range(1000)]
    started = time.perf_counter()
    client.ask_all([(OpCode.CREATE, CreateRequest(path, DATA, OPEN, 0)) for path in parents])
    client.ask_all([(OpCode.CREATE, CreateRequest(path, DATA, OPEN, 0)) for path in children])
    return time.perf_counter() - started


@contextmanager
def _own_nodes(clients: Sequence[Session]) -> Iterator[None]:
    """A node for each session, `/s` and its number."""
    paths = [f"/s{number}" for number in range(len(clients))]
    client = clients[0]
    client.ask_all([(OpCode.CREATE, CreateRequest(path, DATA, OPEN, 0)) for path in paths])
    yield
    client.ask_all([(OpCode.DELETE, VersionRequest(path, -1)) for path in paths])
