"""The part of kazoo's client that `zk.kazoo.session` uses, over the simulated network.

kazoo's thread consists of events of the process, and is paused and killed with it. A lost
connection is retried for ever. A request on a lost connection fails with ConnectionLoss, whether
or not it was performed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from kazoo import exceptions as kazoo_errors
from kazoo.protocol.states import KazooState, KeeperState

from tests.simulation.ensemble import HOST, Ensemble, Link
from tests.simulation.network import Pipe

if TYPE_CHECKING:
    from tests.simulation.process import SimProcess


class SimKazooClient:
    """A client of `ensemble` in the process that creates it."""

    def __init__(self, ensemble: Ensemble, hosts: str, timeout: float, **_: Any) -> None:
        process = asyncio.get_running_loop()
        self._process: SimProcess = process  # type: ignore[assignment]
        self._ensemble = ensemble
        self._timeout_s = timeout
        self._listener: Callable[[str], object] = lambda state: None
        self._connection = SimpleNamespace(_read_watch_event=lambda buffer, offset: None)
        self._link: _ClientLink | None = None
        self._stopped = False
        self.client_state = KeeperState.CONNECTING
        self.client_id = (0, b"")
        self.last_zxid = 0

    # interface of the session

    def add_listener(self, listener: Callable[[str], object]) -> None:
        self._listener = listener

    def start_async(self) -> None:
        self._connect()

    def _call(self, record: Any, answer: Any) -> None:
        if self._link is None or not self._link.is_connected:
            answer.set_exception(kazoo_errors.ConnectionLoss())
        else:
            self._link.request(record, answer)

    def stop(self) -> None:
        """Close the session, if the ensemble can be reached."""
        self._stopped = True
        link, self._link = self._link, None
        if link is not None:
            link.close_session()
        self.client_state = KeeperState.CLOSED

    def close(self) -> None:
        """Release nothing."""

    # callbacks of the connection

    def _connect(self) -> None:
        if not self._stopped and self.client_state != KeeperState.EXPIRED_SESSION:
            self._link = _ClientLink(
                self, self._process, self._ensemble, self.client_id[0], self._timeout_s
            )

    def connected(self, link: _ClientLink, session_id: int) -> None:
        if link is not self._link:
            return
        if session_id == 0:
            self._link = None
            link.drop()
            self.client_state = KeeperState.EXPIRED_SESSION
            self._listener(KazooState.LOST)
            return
        self.client_id = (session_id, b"")
        self.client_state = KeeperState.CONNECTED
        self._listener(KazooState.CONNECTED)

    def disconnected(self, link: _ClientLink) -> None:
        """Reconnect somewhat later."""
        if link is not self._link:
            return
        self._link = None
        if self.client_state == KeeperState.CONNECTED:
            self.client_state = KeeperState.CONNECTING
            self._listener(KazooState.SUSPENDED)
        wait_ms = self._process.network.random.randrange(10, 300)
        self._process.call_later(wait_ms / 1000, self._connect)

    def watch_event_received(self, event: bytes) -> None:
        self._connection._read_watch_event(event, 0)


class _ClientLink:
    """One connection: pings every third of the timeout, fails after two thirds of silence."""

    def __init__(
        self,
        client: SimKazooClient,
        process: SimProcess,
        ensemble: Ensemble,
        session_id: int,
        timeout_s: float,
    ) -> None:
        network = process.network
        self.is_connected = False
        self._client = client
        self._process = process
        self._ensemble = ensemble
        self._timeout_s = timeout_s
        self._to_server = Pipe(network, process.host, HOST)
        self._to_client = Pipe(network, HOST, process.host)
        self._server_link = Link(
            self._to_client,
            lambda event: self._post(self._event, event),
            lambda: self._post(self.drop),
        )
        self._in_flight: dict[int, Any] = {}
        self._next = 0
        self._is_dropped = False
        self._silence = process.call_later(timeout_s, self.drop)
        self._to_server.send(lambda: self._opened(session_id))

    def request(self, record: Any, answer: Any) -> None:
        number = self._next
        self._next += 1
        self._in_flight[number] = answer

        def answered(value: Any, error: Exception | None, zxid: int) -> None:
            self._post(self._answered, number, value, error, zxid)

        self._to_server.send(lambda: self._ensemble.request(self._server_link, record, answered))

    def close_session(self) -> None:
        if self.is_connected:
            session_id = self._client.client_id[0]
            self._to_server.send(lambda: self._ensemble.expire(session_id, "closed"))
        self._end()

    def drop(self) -> None:
        """Give the connection up."""
        if self._is_dropped:
            return
        self._end()
        link = self._server_link
        self._to_server.drop()
        closing = Pipe(self._process.network, self._process.host, HOST)
        closing.send(lambda: self._ensemble.connection_closed(link))
        lost, self._in_flight = self._in_flight, {}
        self._client.disconnected(self)
        for answer in lost.values():
            answer.set_exception(kazoo_errors.ConnectionLoss())

    def _end(self) -> None:
        self._is_dropped = True
        self.is_connected = False
        self._silence.cancel()

    # at the server

    def _opened(self, session_id: int) -> None:
        ensemble = self._ensemble
        if ensemble.is_down:
            return
        found = ensemble.open(self._server_link, session_id, int(self._timeout_s * 1e6))
        self._to_client.send(lambda: self._post(self._accepted, found))

    def _pinged(self) -> None:
        session = self._server_link.session
        if not self._ensemble.is_down and session is not None and (
            session.link is self._server_link
        ):  # fmt: skip
            self._ensemble.restart_timeout(session)
            self._to_client.send(lambda: self._post(self._restart_timeout))

    # at the client, as events of its process

    def _post(self, callback: Callable[..., object], *args: Any) -> None:
        if not self._process.is_dead:
            self._process.call_soon(callback, *args)

    def _restart_timeout(self) -> None:
        self._silence.cancel()
        if not self._is_dropped:
            self._silence = self._process.call_later(self._timeout_s * 2 / 3, self.drop)

    def _accepted(self, session_id: int) -> None:
        if self._is_dropped:
            return
        self.is_connected = session_id != 0
        self._restart_timeout()
        self._client.connected(self, session_id)
        self._ping()

    def _ping(self) -> None:
        if self.is_connected:
            self._to_server.send(self._pinged)
            self._process.call_later(self._timeout_s / 3, self._ping)

    def _answered(self, number: int, value: Any, error: Exception | None, zxid: int) -> None:
        answer = self._in_flight.pop(number, None)
        if answer is None:
            return
        self._restart_timeout()
        self._client.last_zxid = max(self._client.last_zxid, zxid)
        if error is None:
            answer.set(value)
        else:
            answer.set_exception(error)

    def _event(self, event: bytes) -> None:
        if not self._is_dropped:
            self._restart_timeout()
            self._client.watch_event_received(event)
