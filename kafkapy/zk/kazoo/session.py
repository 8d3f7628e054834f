"""One ZooKeeper session over kazoo: sends and resends requests, sets watches and sets them again.

kazoo reads and writes in a thread of its own. Everything here runs on the event loop, except
`_AnswerReceiver`, `Session._on_event` and `Session._on_state`, which kazoo's thread calls: they
only post to the loop. kazoo's retries, recipes and watches are not used, because Kafka needs more:

- A request whose answer was lost is sent again, in order, once the session is connected again.
  One above ZooKeeper's limit fails after some attempts.
- kazoo drops the watches of a lost connection. `SetWatches` sets them again, and the server fires
  those whose node changed meanwhile.
- kazoo replaces an expired session by itself. Here, a session is not replaced, because its
  ephemerals and watches are lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final

from kazoo import exceptions as kazoo_errors
from kazoo.client import KazooClient
from kazoo.protocol import serialization as wire
from kazoo.protocol.connection import PURESASL_AVAILABLE
from kazoo.protocol.states import KazooState, KeeperState
from kazoo.retry import KazooRetry

from kafkapy.common.errors import ConfigError
from kafkapy.zk.kazoo.client_config import SASL_LOGIN, ZooKeeperClientConfig
from kafkapy.zk.kazoo.client_log import client_logger
from kafkapy.zk.kazoo.handler import Handler
from kafkapy.zk.kazoo.request_window import RequestWindow
from kafkapy.zk.kazoo.tls import ssl_context
from kafkapy.zk.watch_table import WatchTable, WatchTarget
from kafkapy.zk.zookeeper import (
    BadVersion,
    NodeExists,
    NoNode,
    NotEmpty,
    Op,
    SessionExpired,
    Watch,
    WatchEvent,
    WatchEventType,
    ZooKeeperError,
)

CLOSE_LIMIT_S: Final = 2.0
_RECONNECT_MAX_DELAY_S: Final = 1.0
_WATCHES_PER_REQUEST: Final = 1000
_REQUEST_BYTES_MAX: Final = (1 << 20) - 1
"""The default limit of ZooKeeper's servers (`jute.maxbuffer`), which may be set higher."""
_LARGE_ATTEMPTS: Final = 3
"""The number of times that a request above the default limit is sent."""
_HEADER_BYTES: Final = 8

_WATCH_KINDS: Final = {
    1: WatchEventType.CREATED,
    2: WatchEventType.DELETED,
    3: WatchEventType.DATA_CHANGED,
    4: WatchEventType.CHILDREN_CHANGED,
}
_ERRORS: Final[tuple[tuple[type[Exception], type[ZooKeeperError]], ...]] = (
    (kazoo_errors.NoNodeError, NoNode),
    (kazoo_errors.NoChildrenForEphemeralsError, NoNode),
    (kazoo_errors.NodeExistsError, NodeExists),
    (kazoo_errors.BadVersionError, BadVersion),
    (kazoo_errors.NotEmptyError, NotEmpty),
    (kazoo_errors.SessionExpiredError, SessionExpired),
)
# The errors of the other operations in a failed multi.
_NOT_THE_CAUSE: Final = (kazoo_errors.RolledBackError, kazoo_errors.RuntimeInconsistency)


class ConnectionState(Enum):
    """States of a session, with the names of Kafka's `SessionState` metric."""

    CONNECTING = "CONNECTING"
    CONNECTED = "CONNECTED"
    EXPIRED = "EXPIRED"
    AUTH_FAILED = "AUTH_FAILED"
    CLOSED = "CLOSED"


class _Read:
    """A read, with the interface of kazoo's request records.

    With kazoo's own record, kazoo would keep the watch.
    """

    __slots__ = ("_kind", "_path", "_watched", "type")

    def __init__(self, kind: Any, path: str, watched: bool) -> None:
        self.type = kind.type
        self._kind = kind
        self._path = path
        self._watched = watched

    def serialize(self) -> bytes:
        return self._kind(self._path, self._watched).serialize()  # type: ignore[no-any-return]

    def deserialize(self, buffer: bytes, offset: int) -> Any:
        return self._kind.deserialize(buffer, offset)


class _SetWatches:
    """ZooKeeper's SetWatches request, with the interface of kazoo's request records."""

    type = 101

    def __init__(self, relative_zxid: int, *paths: Sequence[str]) -> None:
        """`paths` are the paths of watches on data, on absence and on children."""
        self._relative_zxid = relative_zxid
        self._paths = paths

    def serialize(self) -> bytes:
        parts = [struct.pack(">q", self._relative_zxid)]
        for paths in self._paths:
            parts.append(struct.pack(">i", len(paths)))
            parts += [wire.write_string(path) for path in paths]
        return b"".join(parts)

    def deserialize(self, buffer: bytes, offset: int) -> bool:
        return True


class _Call:
    """One request until its answer. `path` is the caller's; `ops` are those of a multi."""

    __slots__ = ("future", "losses", "ops", "path", "record", "sent_s", "target", "watch")

    def __init__(
        self,
        path: str,
        record: Any,
        future: asyncio.Future[Any] | None,
        watch: Watch | None = None,
        target: WatchTarget = WatchTarget.DATA,
        ops: Sequence[Op] = (),
    ) -> None:
        self.path = path
        self.record = record
        self.future = future
        self.watch = watch
        self.target = target
        self.ops = ops
        self.sent_s = 0.0
        self.losses = 0


class _AnswerReceiver:
    """Receives a result from kazoo, in kazoo's thread."""

    __slots__ = ("_call", "_session")

    def __init__(self, session: Session, call: _Call) -> None:
        self._session = session
        self._call = call

    def set(self, value: object = None) -> None:
        self._session.post(self._session.handle_answer, self._call, value, None)

    def set_exception(self, error: Exception) -> None:
        self._session.post(self._session.handle_answer, self._call, None, error)


class Session:
    """One ZooKeeper session, from its first connection until it expires or is closed."""

    def __init__(
        self,
        config: ZooKeeperClientConfig,
        on_state: Callable[[ConnectionState], None],
        make_client: Callable[..., Any] = KazooClient,
        on_answer: Callable[[float], None] | None = None,
    ) -> None:
        """`on_answer` is called with the seconds that each answer took."""
        self.session_id = 0
        self._chroot = config.chroot
        self._loop = asyncio.get_running_loop()
        self._notify = on_state
        self._on_answer = on_answer
        self.ended_by: ConnectionState | None = None
        self._window: RequestWindow[_Call] = RequestWindow(config.max_in_flight_requests)
        self._watches = WatchTable()
        # After a reconnection, until the server has our watches again: the zxid up to which it had
        # them, and the number of SetWatches requests without an answer.
        self._watched_until_zxid: int | None = None
        self._unanswered_set_watches = 0
        context = None if config.tls is None else ssl_context(config.tls)
        connect_timeout_s = config.session_timeout_ms / 1000 / len(config.hosts)
        self._handler: Handler = Handler(connect_timeout_s, context)
        self._client = make_client(
            ",".join(config.hosts),
            timeout=config.session_timeout_ms / 1000,
            handler=self._handler,
            auth_data=[config.auth] if config.auth else None,
            sasl_options=sasl_options(config),
            connection_retry=KazooRetry(
                max_tries=-1,
                max_delay=_RECONNECT_MAX_DELAY_S,
                sleep_func=self._handler.sleep_func,
            ),
            logger=client_logger(),
        )
        # kazoo would pass an event to the watches that it keeps, and it drops them too early.
        self._client._connection._read_watch_event = self._on_event
        self._client.add_listener(self._on_state)
        self._client.start_async()

    @property
    def problem(self) -> str:
        """The reason why the last attempt to connect failed; "" if none failed."""
        return self._handler.problem

    def read(
        self,
        kind: Any,
        path: str,
        watch: Watch | None = None,
        target: WatchTarget = WatchTarget.DATA,
    ) -> asyncio.Future[Any]:
        """Send a read; `kind` is the class of kazoo's record."""
        record = _Read(kind, self.absolute(path), watch is not None)
        return self._submit(path, record, watch, target)

    def send(self, path: str, record: Any, ops: Sequence[Op] = ()) -> asyncio.Future[Any]:
        """Send one of kazoo's records, with absolute paths. A multi has its `ops`."""
        return self._submit(path, record, ops=ops)

    def _submit(
        self,
        path: str,
        record: Any,
        watch: Watch | None = None,
        target: WatchTarget = WatchTarget.DATA,
        ops: Sequence[Op] = (),
    ) -> asyncio.Future[Any]:
        if self.ended_by is not None:
            raise SessionExpired(path)
        future = self._loop.create_future()
        self._window.push(_Call(path, record, future, watch, target, ops))
        self._send_waiting()
        return future

    async def close(self, limit_s: float = CLOSE_LIMIT_S) -> None:
        """End the session. Waiting requests get SessionExpired."""
        self._end(ConnectionState.CLOSED)
        stopping = self._loop.run_in_executor(None, self._stop_client)
        try:
            await asyncio.wait([stopping], timeout=limit_s)
        finally:
            # This has no effect once the server has answered. Otherwise the session expires on the
            # server. It is needed after a cancellation too: the process would wait for the thread
            # before it exits.
            self._handler.disconnect()
        await stopping

    def post(self, callback: Callable[..., None], *args: object) -> None:
        """Schedule a callback in the loop; from any thread."""
        # RuntimeError: the loop was closed before the session, so no callback is needed.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback, *args)

    def handle_answer(self, call: _Call, value: Any, error: Exception | None) -> None:
        """Handle an answer from kazoo."""
        if not self._window.complete(call):
            return
        if isinstance(error, kazoo_errors.ConnectionLoss):
            self._handle_loss(call)
            return
        if self._on_answer is not None:
            self._on_answer(self._loop.time() - call.sent_s)
        if call.future is None:
            self._set_watches_answered()
        else:
            self._settle(call, call.future, value, error)
        self._send_waiting()

    def _handle_loss(self, call: _Call) -> None:
        """Send a request again. ZooKeeper closes the connection at a request above its limit. If it
        were sent forever, no other request would be answered.
        """
        self._window.shut()
        if call.future is None or call.future.done():
            return
        call.losses += 1
        if call.losses < _LARGE_ATTEMPTS or _size_of(call.record) <= _REQUEST_BYTES_MAX:
            self._window.requeue(call)
            return
        message = f"ZooKeeper does not take {_size_of(call.record)} bytes for {call.path}"
        call.future.set_exception(ZooKeeperError(call.path, message))

    def _settle(
        self, call: _Call, future: asyncio.Future[Any], value: Any, error: Exception | None
    ) -> None:
        path = call.path
        if call.ops and error is None:
            path, error = _failure_in(call.ops, value)
        if error is None and call.watch is not None:
            self._watches.add(
                WatchTarget.ABSENCE if value is None else call.target, path, call.watch
            )
        if future.done():
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(_refusal(error, path))

    def _send_waiting(self) -> None:
        while (call := self._window.next()) is not None:
            call.sent_s = self._loop.time()
            # kazoo has no public call for custom records, such as SetWatches.
            self._client._call(call.record, _AnswerReceiver(self, call))

    def _on_event(self, buffer: bytes, offset: int) -> None:
        """Handle an event of a watch. Called in kazoo's thread."""
        event, _ = wire.Watch.deserialize(buffer, offset)
        if event.type in _WATCH_KINDS:
            self.post(self._fire, _WATCH_KINDS[event.type], event.path)

    def _fire(self, kind: WatchEventType, path: str) -> None:
        event = WatchEvent(kind, path[len(self._chroot) :] or "/")
        for watch in self._watches.fire(event):
            # Called later, so that the caller of the read that set the watch continues first.
            self._loop.call_soon(watch, event)

    def _on_state(self, state: KazooState) -> None:
        """Handle a change of the connection or the session. Called in kazoo's thread."""
        client = self._client
        if client.client_state == KeeperState.EXPIRED_SESSION:
            self._handler.stop_connecting()
        session_id = client.client_id[0] if state == KazooState.CONNECTED else 0
        self.post(self._state_changed, client.client_state, session_id, client.last_zxid)

    def _state_changed(self, state: str, session_id: int, zxid: int) -> None:
        if self.ended_by is not None:
            return
        if state == KeeperState.CONNECTED:
            self.session_id = session_id
            self._window.open(self._set_watches_calls(zxid))
            self._notify(ConnectionState.CONNECTED)
            self._send_waiting()
        elif state == KeeperState.CONNECTING:
            self._window.shut()
            self._notify(ConnectionState.CONNECTING)
        elif state == KeeperState.AUTH_FAILED:
            self._end(ConnectionState.AUTH_FAILED)
        else:
            self._end(ConnectionState.EXPIRED)

    def _set_watches_calls(self, zxid: int) -> list[_Call]:
        """Requests that set every watch again. `zxid` is the last one before the reconnection."""
        watched = [
            (target, self.absolute(path))
            for target in WatchTarget
            for path in self._watches.paths(target)
        ]
        if self._watched_until_zxid is None:
            self._watched_until_zxid = zxid
        calls = []
        for start in range(0, len(watched), _WATCHES_PER_REQUEST):
            batch = watched[start : start + _WATCHES_PER_REQUEST]
            lists = [[path for target, path in batch if target is kind] for kind in WatchTarget]
            calls.append(_Call("/", _SetWatches(self._watched_until_zxid, *lists), None))
        self._unanswered_set_watches = len(calls) + 1
        self._set_watches_answered()
        return calls

    def _set_watches_answered(self) -> None:
        self._unanswered_set_watches -= 1
        if self._unanswered_set_watches == 0:
            self._watched_until_zxid = None

    def _end(self, state: ConnectionState) -> None:
        if self.ended_by is not None:
            return
        self.ended_by = state
        self._window.shut()
        for call in self._window.drain():
            if call.future is not None and not call.future.done():
                call.future.set_exception(SessionExpired(call.path))
        self._notify(state)

    def _stop_client(self) -> None:
        """Close kazoo's client. Blocks until the server has answered, or the connection is lost."""
        self._client.stop()
        self._client.close()

    def absolute(self, path: str) -> str:
        """A caller's path with the chroot."""
        return (self._chroot + path if path != "/" else self._chroot) or "/"


def _size_of(record: Any) -> int:
    return _HEADER_BYTES + len(record.serialize())


def _failure_in(ops: Sequence[Op], values: Sequence[Any]) -> tuple[str, Exception | None]:
    """The path and the error of a multi's first operation that failed by itself."""
    for op, value in zip(ops, values, strict=True):
        if isinstance(value, Exception) and not isinstance(value, _NOT_THE_CAUSE):
            return op.path, value
    return ops[0].path, None


def _refusal(error: Exception, path: str) -> ZooKeeperError:
    for kazoo_error, port_error in _ERRORS:
        if isinstance(error, kazoo_error):
            return port_error(path)
    return ZooKeeperError(path, f"ZooKeeper refused {path}: {type(error).__name__}")


def sasl_options(config: ZooKeeperClientConfig) -> dict[str, str] | None:
    """kazoo's login options; None without a login. Raises ConfigError: the package pure-sasl is
    not installed.
    """
    if config.sasl is None:
        return None
    if not PURESASL_AVAILABLE:
        raise ConfigError(f"{SASL_LOGIN} needs the package pure-sasl: pip install pure-sasl")
    return {
        "mechanism": "DIGEST-MD5",
        "username": config.sasl.username,
        "password": config.sasl.password,
    }
