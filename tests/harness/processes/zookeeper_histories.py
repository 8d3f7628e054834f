"""Clients that send random requests to one ZooKeeper server at once, and check its frames."""

from __future__ import annotations

import random
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from kafkapy.zk.wire.codes import OpCode
from kafkapy.zk.wire.frames import FrameDecoder, encode_frame
from kafkapy.zk.wire.requests import CreateRequest
from tests.harness.cores.zookeeper_history import OPEN, Observer, random_request, replay

CLIENTS = 8
PIPELINE = 4
"""The most requests that a client sends before it reads."""
LIMIT_S = 60.0


class Client:
    """A client of a server, over a socket."""

    def __init__(self, number: int, port: int) -> None:
        self.observer = Observer(number)
        self._port = port
        self._socket = self._connect()

    def _connect(self) -> socket.socket:
        self._cutter = FrameDecoder(1 << 30)
        made = socket.create_connection(("127.0.0.1", self._port), LIMIT_S)
        made.sendall(encode_frame(self.observer.connect_request_frame()))
        self._socket = made
        self.drain()
        return made

    def ask(self, *frames: bytes) -> None:
        """Send requests at once, and read until all are answered."""
        self._socket.sendall(b"".join(map(encode_frame, frames)))
        self.drain()

    def drain(self) -> None:
        """Read until all requests are answered."""
        while self.observer.waits:
            data = self._socket.recv(65536)
            assert data, f"client {self.observer.number} was sent away"
            self._cutter.feed(data)
            for frame in iter(self._cutter.next_frame, None):
                self.observer.received(frame)

    def reconnect(self) -> None:
        """Continue the session on another connection."""
        self._socket.close()
        self._socket = self._connect()
        self.ask(self.observer.set_watches_frame())

    def close(self) -> None:
        self._socket.close()


def run_history(port: int, root: str, seed: int, rounds: int, restart: Callable[[], object]) -> int:
    """Run eight clients below a new root for `rounds` rounds of requests. Returns the number of
    writes.

    The clients reconnect at times, and all of them once when `restart` has killed the server.
    Raises AssertionError for a frame that a client must not get.
    """
    made = [(OpCode.CREATE2, CreateRequest(root, b"", OPEN, 0))]
    clients = [Client(number, port) for number in range(CLIENTS)]
    barrier = threading.Barrier(CLIENTS, restart, LIMIT_S)
    try:
        clients[0].ask(*(clients[0].observer.request(op, body) for op, body in made))
        clients[0].observer.writes.clear()
        with ThreadPoolExecutor(CLIENTS) as pool:
            for done in [pool.submit(_run, c, root, seed, rounds, barrier) for c in clients]:
                done.result()
        observers = [client.observer for client in clients]
        assert sum(each.events for each in observers), "no watch was ever triggered"
        return replay(observers, made)
    finally:
        for client in clients:
            client.close()


def _run(client: Client, root: str, seed: int, rounds: int, barrier: threading.Barrier) -> None:
    chance = random.Random(f"{seed} {client.observer.number}")
    try:
        for number in range(rounds):
            if number == rounds // 2:
                barrier.wait()
                client.reconnect()
            elif chance.random() < 0.05:
                client.reconnect()
            asked = [random_request(chance, root) for _ in range(chance.randrange(1, PIPELINE + 1))]
            client.ask(*(client.observer.request(op, body) for op, body in asked))
    except BaseException:
        barrier.abort()
        raise
