"""TCP links that can be cut, held or slowed for single processes: a userspace network.

One event loop in a thread serves all links of a test. A `Link` listens on a port of its own and
forwards to a target; its faults can be limited to connections from one process, so that "broker 1
to broker 2" can fail while "broker 3 to broker 2" works.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from tests.harness.processes.waiting import join

ANYONE = -1


class Trouble(Enum):
    """State of a link: it forwards bytes, or has one of these faults.

    Bytes that are held are delivered, late, when the link heals without being broken.
    """

    NONE = "forwards"
    CUT = "connections are broken and refused"
    HOLD = "half-open: accepts, and neither direction gets through"
    HOLD_REQUESTS = "what the connecting side sends does not arrive"
    HOLD_ANSWERS = "what the target answers does not arrive"
    DELAY = "every chunk is late"


DELAY_S = 0.3


class Pace(NamedTuple):
    """A degraded network: the latency, and the bytes per second in each direction."""

    latency_s: float
    bytes_per_s: float


class Network:
    """The loop and thread of the links. `sources()` are the pids that faults may be limited to."""

    def __init__(self, sources: Callable[[], Iterable[int]] = lambda: ()) -> None:
        self._sources = sources
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name="links", daemon=True)
        self._links: list[Link] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        join(self._thread)
        self.loop.close()

    async def _end(self) -> None:
        for link in self._links:
            link.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for _ in range(10):
            await asyncio.sleep(0)  # the transports' own last callbacks

    def link(self, port: int, target_port: int) -> Link:
        """A link from `port` to `target_port`, both on loopback; it serves until the end."""
        link = Link(port, target_port, self._sources)
        asyncio.run_coroutine_threadsafe(link.serve(), self.loop).result(10)
        self._links.append(link)
        return link

    def set(self, link: Link, trouble: Trouble, source_pid: int = ANYONE) -> None:
        """Set the trouble of connections of `source_pid`, open ones included."""
        self.loop.call_soon_threadsafe(link.change, trouble, source_pid)

    def degrade(self, link: Link, pace: Pace) -> None:
        """Forward all connections at this pace until `heal`."""
        self.loop.call_soon_threadsafe(link.degrade, pace)

    def heal(self, link: Link, *, broken: bool) -> None:
        """Forward again. `broken` breaks connections in trouble, else their bytes arrive late."""
        self.loop.call_soon_threadsafe(link.heal, broken)


class Link:
    """Used by its network, in the network's thread."""

    def __init__(self, port: int, target_port: int, sources: Callable[[], Iterable[int]]) -> None:
        self.port = port
        self._target_port = target_port
        self._sources = sources
        self._troubles: dict[int, Trouble] = {}
        self._pace: Pace | None = None
        self._changed = asyncio.Event()
        self._connections: dict[asyncio.Task[None], int] = {}

    async def serve(self) -> None:
        """Accept connections. An `asyncio.Server` loses some that it accepts as it is closed."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._listener.setblocking(False)
        asyncio.get_running_loop().add_reader(self._listener, self._accept)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._listener)
        self._listener.close()

    def change(self, trouble: Trouble, source_pid: int) -> None:
        self._troubles[source_pid] = trouble
        if trouble is Trouble.CUT:
            self._break()
        self._wake()

    def degrade(self, pace: Pace) -> None:
        self._pace = pace

    def heal(self, broken: bool) -> None:
        if broken:
            self._break()
        self._troubles.clear()
        self._pace = None
        self._wake()

    def _break(self) -> None:
        for task, pid in self._connections.items():
            if self._trouble(pid) is not Trouble.NONE:
                task.cancel()

    def _wake(self) -> None:
        """Wake the tasks that hold bytes, to check the trouble again."""
        self._changed.set()
        self._changed = asyncio.Event()

    def _trouble(self, pid: int) -> Trouble:
        return self._troubles.get(pid) or self._troubles.get(ANYONE, Trouble.NONE)

    def _accept(self) -> None:
        try:
            accepted, (_, source_port) = self._listener.accept()
        except OSError:
            return  # it went away
        task = asyncio.ensure_future(self._serve_one(accepted, source_port))
        self._connections[task] = ANYONE
        task.add_done_callback(self._connections.pop)
        task.add_done_callback(lambda _: accepted.close())  # the task may never have begun

    async def _serve_one(self, accepted: socket.socket, source_port: int) -> None:
        task = asyncio.current_task()
        assert task is not None
        with contextlib.suppress(OSError):  # one side went away
            pid = process_at(source_port, self.port, self._sources())
            self._connections[task] = pid
            if self._trouble(pid) is Trouble.CUT:
                return
            reader, writer = await asyncio.open_connection(sock=accepted)
            try:
                await self._forward(pid, reader, writer)
            finally:
                writer.transport.abort()

    async def _forward(
        self, pid: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        to_server = asyncio.ensure_future(
            self._copy(pid, Trouble.HOLD_REQUESTS, reader, far_writer)
        )
        to_client = asyncio.ensure_future(self._copy(pid, Trouble.HOLD_ANSWERS, far_reader, writer))
        try:
            await asyncio.wait([to_server, to_client], return_when=asyncio.FIRST_COMPLETED)
        finally:
            to_server.cancel()
            to_client.cancel()
            far_writer.transport.abort()  # before the wait, which a second cancellation ends
            await asyncio.gather(to_server, to_client, return_exceptions=True)

    async def _copy(
        self,
        pid: int,
        own_hold: Trouble,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        direction = _Direction(writer)
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if self._trouble(pid) is Trouble.DELAY:
                    await asyncio.sleep(DELAY_S)
                while self._trouble(pid) in (Trouble.HOLD, own_hold):
                    await self._changed.wait()
                await direction.send(data, self._pace)
            await direction.arrived()
            while self._trouble(pid) in (Trouble.HOLD, own_hold):
                await self._changed.wait()  # the end of a stream is held like its bytes


class _Direction:
    """One direction of one connection: bytes sent at a pace arrive before later bytes."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._free_at = 0.0
        self._last_arrival = 0.0

    async def send(self, data: bytes, pace: Pace | None) -> None:
        if pace is None:
            await self.arrived()
            self._writer.write(data)
            await self._writer.drain()
            return
        self._free_at = max(self._free_at, self._loop.time()) + len(data) / pace.bytes_per_s
        self._last_arrival = self._free_at + pace.latency_s
        self._loop.call_at(self._last_arrival, self._writer.write, data)
        await asyncio.sleep(self._free_at - self._loop.time())

    async def arrived(self) -> None:
        """Wait until all bytes have arrived."""
        while (left_s := self._last_arrival - self._loop.time()) >= 0:
            await asyncio.sleep(left_s + 0.001)


def process_at(local_port: int, remote_port: int, among: Iterable[int]) -> int:
    """The process of `among` that connected from a loopback port (Linux); ANYONE if none of them.

    Other processes are not checked: on a busy machine that takes a tenth of a second, in which no
    link forwards anything.
    """
    ends = f"0100007F:{local_port:04X} 0100007F:{remote_port:04X}"
    for line in Path("/proc/net/tcp").read_text().splitlines():
        if ends in line:
            its_socket = f"socket:[{line.split()[9]}]"
            return next((pid for pid in among if its_socket in _open_by(pid)), ANYONE)
    return ANYONE


def _open_by(pid: int) -> set[str]:
    """Link targets of a process's open descriptors; none if the process is gone."""
    found = set()
    with contextlib.suppress(OSError):
        for descriptor in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                found.add(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
    return found
