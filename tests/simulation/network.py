"""A network of hosts: delay, loss, cut links (one way or both), reordering between connections.

A connection is a pair of pipes. A pipe keeps its order, as TCP does. Data at a cut link waits until
the link heals, unless the connection was given up meanwhile. A loss that TCP repairs appears as
delay. A loss that it cannot repair appears as a reset that drops all data in flight.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.events import MS_US
from tests.simulation.flips import with_flipped_bit

if TYPE_CHECKING:
    from tests.simulation.events import Events
    from tests.simulation.process import SimProcess
    from tests.simulation.trace import Trace

_SLOW_ONE_IN: Final = 50  # one message in this many takes long
_PART_BYTES_MAX: Final = 4096


class Pipe:
    """One direction of a connection: data is delivered once, in order, some time later."""

    __slots__ = ("_is_armed", "_is_dropped", "_items", "_last_us", "_network", "source", "target")

    def __init__(self, network: Network, source: str, target: str) -> None:
        self.source = source
        self.target = target
        self._network = network
        self._items: deque[tuple[int, Callable[[], None]]] = deque()
        self._last_us = 0
        self._is_armed = False
        self._is_dropped = False

    def send(self, deliver: Callable[[], None]) -> None:
        if self._is_dropped:
            return
        network = self._network
        due_us = max(self._last_us, network.events.now_us + network.delay_us(self))
        self._last_us = due_us
        self._items.append((due_us, deliver))
        self._arm()

    def drop_unsent(self) -> None:
        """Give up as the sender: data held back by a cut link was never sent."""
        if (self.source, self.target) in self._network.cut_links:
            self._items.clear()

    def drop(self) -> None:
        """Lose the data in flight, and all data sent from now on."""
        self._is_dropped = True
        self._items.clear()

    def _arm(self) -> None:
        if not self._is_armed and self._items:
            self._is_armed = True
            self._network.events.at(self._items[0][0], self._arrive)

    def _arrive(self) -> None:
        self._is_armed = False
        if not self._items:
            return
        network = self._network
        if (self.source, self.target) in network.cut_links:
            network.waiting_pipes.setdefault((self.source, self.target), []).append(self)
            self._is_armed = True
            return
        _, deliver = self._items.popleft()
        deliver()
        self._arm()

    def resume(self) -> None:
        """Continue after the link has healed."""
        self._is_armed = False
        self._arm()


class Network:
    """The hosts by name, the links by (from, to)."""

    def __init__(self, events: Events, random: Random, trace: Trace) -> None:
        self.events = events
        self.random = random
        self.trace = trace
        self.cut_links: dict[tuple[str, str], None] = {}
        self.waiting_pipes: dict[tuple[str, str], list[Pipe]] = {}
        self.slow_us: dict[tuple[str, str], int] = {}
        self.reset_one_in = 0  # writes, 0 for never
        self.resets = 0
        self.flip_one_in = 0  # writes, 0 for never: flips a bit of a batch
        self.flips: Counter[str] = Counter()  # by source
        self.late_data_us: dict[str, int] = {}
        """The time at which a host last read data of a connection that the sender had closed."""
        self.powered_off: dict[str, None] = {}
        self._listeners: dict[tuple[str, int], tuple[SimProcess, SimSocket]] = {}
        self._next_port = 40_000

    def delay_us(self, pipe: Pipe) -> int:
        chance = self.random.random()
        delay_us = 150 + int(chance * 600)
        if int(chance * 1_000_000) % _SLOW_ONE_IN == 0:
            delay_us += int(chance * 60 * MS_US)
        return delay_us + self.slow_us.get((pipe.source, pipe.target), 0)

    def cut_link(self, source: str, target: str) -> None:
        self.cut_links[source, target] = None

    def heal_link(self, source: str, target: str) -> None:
        self.cut_links.pop((source, target), None)
        for pipe in self.waiting_pipes.pop((source, target), ()):
            pipe.resume()

    def heal(self) -> None:
        """Heal all links and make them fast."""
        for source, target in list(self.cut_links):
            self.heal_link(source, target)
        self.slow_us.clear()
        self.reset_one_in = self.flip_one_in = 0

    # processes and their connections

    async def accept(self, process: SimProcess, bound: SimSocket) -> tuple[SimAccepted, Any]:
        """Like loop.sock_accept. After the first call, connections enter the backlog."""
        self._listeners.setdefault(bound.getsockname(), (process, bound))
        if not bound.backlog:
            bound.on_connection = process.create_future()
            await bound.on_connection
        transport = bound.backlog.popleft()
        return SimAccepted(transport), transport.get_extra_info("peername")

    def process_ended(self, process: SimProcess, closes_connections: bool) -> None:
        """Close a process's open connections as the kernel does, except after a power cut."""
        for address, (owner, _) in list(self._listeners.items()):
            if owner is process:
                del self._listeners[address]
        if closes_connections:
            self.reset_all(process)

    def reset_all(self, process: SimProcess) -> None:
        for transport in list(process.transports):
            transport.reset_peer()
        process.transports.clear()

    async def connect(
        self, process: SimProcess, factory: Callable[[], Any], host: str, port: int
    ) -> tuple[Any, Any]:
        """Like loop.create_connection: refused without a listener, unanswered without power."""
        self._next_port += 1
        near = SimTransport(self, process, Pipe(self, process.host, host), (host, port))
        back = Pipe(self, host, process.host)
        established = process.create_future()

        def arrived() -> None:
            if host in self.powered_off:
                return
            found = self._listeners.get((host, port))
            if found is None or found[0].is_dead or found[1].is_closed:
                back.send(refuse)
                return
            server, bound = found
            far = SimTransport(self, server, back, (process.host, self._next_port))
            far.peer, near.peer = near, far
            server.call_soon(bound.add_connection, far)
            back.send(accept)

        def refuse() -> None:
            process.call_soon(fail)

        def fail() -> None:
            if not established.done():
                established.set_exception(ConnectionRefusedError(f"{host}:{port} refused"))

        def accept() -> None:
            process.call_soon(succeed)

        def succeed() -> None:
            if established.done():
                near.reset_peer()
            else:
                near.create_protocol(factory)
                established.set_result((near, near.protocol))

        near.pipe.send(arrived)
        return await established  # type: ignore[no-any-return]


class SimSocket:
    """A bound socket, with the methods that a broker uses."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self.is_closed = False
        self.backlog: deque[SimTransport] = deque()
        self.on_connection: asyncio.Future[None] | None = None

    def getsockname(self) -> tuple[str, int]:
        return self._address

    def listen(self, backlog: int) -> None:
        """Do nothing: `accept` registers the listener."""

    def add_connection(self, transport: SimTransport) -> None:
        """Take a new connection."""
        if self.is_closed:
            transport.abort()
            return
        transport.register()
        self.backlog.append(transport)
        if self.on_connection is not None and not self.on_connection.done():
            self.on_connection.set_result(None)

    def close(self) -> None:
        """Refuse new connections, and reset those that were not accepted."""
        self.is_closed = True
        while self.backlog:
            self.backlog.popleft().abort()


class SimAccepted:
    """An accepted socket until it has a protocol."""

    def __init__(self, transport: SimTransport) -> None:
        self.transport = transport

    def getpeername(self) -> tuple[str, int]:
        address: tuple[str, int] = self.transport.get_extra_info("peername")
        return address

    def setsockopt(self, *_: int) -> None:
        """Do nothing."""

    def close(self) -> None:
        self.transport.abort()


class SimTransport(asyncio.Transport):
    """One end of a connection: a transport of asyncio for buffered protocols."""

    def __init__(
        self, network: Network, process: SimProcess, pipe: Pipe, peer_address: tuple[str, int]
    ) -> None:
        super().__init__({"peername": peer_address})
        self.peer: SimTransport | None = None
        self.protocol: Any = None
        self.pipe = pipe
        self._network = network
        self._process = process
        self._is_closing = False
        self._is_lost = False
        self._is_reading = True
        self._received: deque[bytes] = deque()

    def create_protocol(self, factory: Callable[[], Any]) -> None:
        """Create the protocol once connected, as an event of the process."""
        self.protocol = factory()
        self.register()
        self.protocol.connection_made(self)
        if self._is_lost:  # while it waited in the backlog
            self._process.transports.pop(self, None)
            self._process.call_soon(self.protocol.connection_lost, None)
        elif self._received:
            self._process.call_soon(self._deliver, b"")

    def register(self) -> None:
        """Register this end with its process, so that it is closed with it."""
        self._process.transports[self] = None

    # interface of protocols

    def is_closing(self) -> bool:
        return self._is_closing

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing: nothing is buffered here."""

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: Any) -> None:
        if self._is_closing:
            return
        network = self._network
        if network.reset_one_in and network.random.randrange(network.reset_one_in) == 0:
            self._break()
            return
        whole = bytes(data)
        if network.flip_one_in and network.random.randrange(network.flip_one_in) == 0:
            flipped = with_flipped_bit(network.random, whole)
            network.flips[self.pipe.source] += flipped is not None
            whole = flipped or whole
        for start in range(0, len(whole), _PART_BYTES_MAX):
            part = whole[start : start + _PART_BYTES_MAX]
            self.pipe.send(lambda part=part: self._deliver_to_peer(part))  # type: ignore[misc]
        if self._process.on_sent is not None:
            self._process.on_sent(_api_key(whole))

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        if self._received:
            self._process.call_soon(self._deliver, b"")

    def close(self) -> None:
        """Close this end. The peer first receives all written data: nothing is buffered here."""
        if not self._is_closing:
            self._end(None)
            self.pipe.send(lambda: self._end_at_peer(None))

    def abort(self) -> None:
        if not self._is_closing:
            self.pipe.drop_unsent()
            self._end(None)
            self.reset_peer()

    # events of a connection

    def reset_peer(self) -> None:
        """Notify the other end that this one is closed, once the link delivers data."""
        self._is_closing = True
        self.pipe.send(lambda: self._end_at_peer(ConnectionResetError("reset by peer")))

    def _break(self) -> None:
        """Break the connection, and lose all data in flight."""
        self._network.resets += 1
        peer = self.peer
        assert peer is not None
        self.pipe.drop()
        peer.pipe.drop()
        error = ConnectionResetError("the connection broke")
        self._end(error)
        self._network.events.after(self._network.delay_us(self.pipe), lambda: peer._post_end(error))

    def _deliver_to_peer(self, data: bytes) -> None:
        peer = self.peer
        assert peer is not None
        process = peer._process
        if process.is_dead:
            return
        process.call_soon(peer._deliver, data)

    def _end_at_peer(self, error: Exception | None) -> None:
        if self.peer is not None:
            self.peer._post_end(error)

    def _post_end(self, error: Exception | None) -> None:
        if not self._process.is_dead:
            self._process.call_soon(self._end, error)

    def _end(self, error: Exception | None) -> None:
        self._is_closing = True
        if not self._is_lost:
            self._is_lost = True
            self._process.transports.pop(self, None)
            if self.protocol is not None:
                self._process.call_soon(self.protocol.connection_lost, error)

    def _deliver(self, data: bytes) -> None:
        """Pass bytes to the protocol, as an event of the process."""
        if data:
            self._received.append(data)
        if self.protocol is None:  # not accepted yet
            return
        while self._received and self._is_reading and not self._is_closing:
            part = self._received.popleft()
            if self.peer is not None and self.peer.is_closing():
                self._network.late_data_us[self._process.host] = self._network.events.now_us
            self._network.trace.bytes_arrived(self._process.host, part)
            view = memoryview(part)
            while view and not self._is_closing:
                buffer = self.protocol.get_buffer(-1)
                size = min(len(buffer), len(view))
                buffer[:size] = view[:size]
                view = view[size:]
                self.protocol.buffer_updated(size)
            if self._process.on_received is not None:
                self._process.on_received(_api_key(part))


def _api_key(frame: bytes) -> int:
    """The API key of a request. A response has its correlation id in that place, which gives 0."""
    return int.from_bytes(frame[4:6], "big")
