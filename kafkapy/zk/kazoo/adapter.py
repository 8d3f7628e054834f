"""ZooKeeper over the network, by kazoo: `zookeeper.ZooKeeper` for an ensemble.

`session` holds the session. This module has the port's operations, the chroot, the ACLs and the
change to a new session.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.protocol import serialization as wire
from kazoo.security import ACL, Id

from kafkapy.common.errors import KafkapyError
from kafkapy.zk.kazoo.client_config import ZooKeeperClientConfig
from kafkapy.zk.kazoo.session import CLOSE_LIMIT_S, ConnectionState, Session
from kafkapy.zk.stores.acls import default_acls
from kafkapy.zk.watch_table import WatchTarget
from kafkapy.zk.zookeeper import (
    ANY_VERSION,
    Check,
    Create,
    CreateMode,
    Delete,
    Get,
    Multi,
    NodeExists,
    Op,
    OpResult,
    Request,
    Response,
    SessionExpired,
    SetData,
    Watch,
    Znode,
    ZnodeStat,
    ZooKeeperError,
)

_FLAGS: Final = {
    CreateMode.PERSISTENT: 0,
    CreateMode.EPHEMERAL: 1,
    CreateMode.PERSISTENT_SEQUENTIAL: 2,
}


class ZooKeeperUnavailable(KafkapyError):
    """No server of the ensemble answered in time."""


class ZooKeeperAuthFailed(KafkapyError):
    """The ensemble refused the login."""


class KazooZooKeeper:
    """A client of an ensemble, with one session at a time: `zookeeper.ZooKeeper`.

    Requests wait while there is no connection. They fail only when the session ends.
    """

    def __init__(
        self, config: ZooKeeperClientConfig, make_client: Callable[..., Any] = KazooClient
    ) -> None:
        """Nothing is connected before `connect`. `make_client` creates the kazoo client.

        `on_session_expired` is called once for each session that the ensemble ended (or whose login
        it refused): call `reconnect` then. For metrics: `on_connection_state` is called at every
        change, `on_answer` with the seconds from each request to its answer. `is_connected` is
        False from the detection of a broken connection to the next one.
        """
        self._config = config
        self._make_client = make_client
        self._session: Session | None = None
        self._session_id = 0
        self.is_connected = False
        self.on_session_expired: Callable[[], None] | None = None
        self.on_connection_state: Callable[[ConnectionState], None] | None = None
        self.on_answer: Callable[[float], None] | None = None

    @property
    def session_id(self) -> int:
        """The id of the current session, or of the last one."""
        return self._session_id

    async def connect(self) -> None:
        """Begin the first session. Creates a missing chroot.

        Raises:
            ZooKeeperUnavailable: no connection within `zookeeper.connection.timeout.ms`.
            ZooKeeperAuthFailed: the ensemble refused the login.
            ConfigError: the TLS stores or the login cannot be used.
        """
        await self._open()
        await self._make_chroot()

    async def reconnect(self) -> None:
        """Replace the expired session with a new one, without watches and ephemerals.

        Raises:
            ZooKeeperUnavailable: no connection within `zookeeper.connection.timeout.ms`. Call
                again.
            ZooKeeperAuthFailed: the ensemble refused the login.
        """
        await self.close()
        await self._open()

    async def close(self, limit_s: float | None = None) -> None:
        """End the session, which deletes its ephemerals. Waiting requests get SessionExpired.

        If the server does not answer within the limit (None: `CLOSE_LIMIT_S`), the session ends by
        its timeout.
        """
        session, self._session = self._session, None
        if session is not None:
            await session.close(CLOSE_LIMIT_S if limit_s is None else limit_s)

    async def get(self, path: str, watch: Watch | None = None) -> Znode:
        """A node's data and stat."""
        data, stat = await self._read(wire.GetData, path, watch)
        return Znode(data or b"", _stat(stat))

    async def exists(self, path: str, watch: Watch | None = None) -> ZnodeStat | None:
        """A node's stat, if it exists."""
        stat = await self._read(wire.Exists, path, watch)
        return None if stat is None else _stat(stat)._replace(children_zxid=stat.pzxid)

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """The sorted names of a node's children."""
        return sorted(await self._read(wire.GetChildren, path, watch, WatchTarget.CHILDREN))

    async def create(self, path: str, data: bytes, mode: CreateMode = CreateMode.PERSISTENT) -> str:
        """Create a node. Returns its path."""
        created_path = await self._write(Create(path, data, mode))
        assert isinstance(created_path, str), created_path
        return created_path

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> ZnodeStat:
        """Replace a node's data."""
        stat = await self._write(SetData(path, data, version))
        assert isinstance(stat, ZnodeStat), stat
        return stat

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Delete a node."""
        await self._write(Delete(path, version))

    async def multi(self, ops: Sequence[Op]) -> list[OpResult]:
        """Apply all operations or none."""
        values = await self._transact(ops)
        return self._results(ops, values)

    async def pipeline(self, requests: Sequence[Request]) -> list[Response]:
        """Send every request in order, with a limited number in flight."""
        futures = [
            self._transact(request.ops)
            if isinstance(request, Multi)
            else self._read(wire.GetData, request.path, request.watch)
            for request in requests
        ]
        answers = await asyncio.gather(*futures, return_exceptions=True)
        return [
            self._response(request, answer)
            for request, answer in zip(requests, answers, strict=True)
        ]

    def _response(self, request: Request, answer: Any) -> Response:
        if isinstance(answer, SessionExpired) or not isinstance(
            answer, ZooKeeperError | list | tuple
        ):
            raise answer
        if isinstance(answer, ZooKeeperError):
            return answer
        if isinstance(request, Get):
            return Znode(answer[0] or b"", _stat(answer[1]))
        return self._results(request.ops, answer)

    def _read(
        self, kind: Any, path: str, watch: Watch | None, target: WatchTarget = WatchTarget.DATA
    ) -> asyncio.Future[Any]:
        return self._live_session(path).read(kind, path, watch, target)

    async def _write(self, op: Op) -> OpResult:
        value = await self._live_session(op.path).send(op.path, self._record(op))
        return self._results([op], [value])[0]

    def _transact(self, ops: Sequence[Op]) -> asyncio.Future[Any]:
        record = wire.Transaction([self._record(op) for op in ops])
        return self._live_session(ops[0].path).send(ops[0].path, record, ops)

    def _record(self, op: Op) -> Any:
        path = self._live_session(op.path).absolute(op.path)
        if isinstance(op, Create):
            return wire.Create(path, op.data or None, self._acl(op.path), _FLAGS[op.mode])
        if isinstance(op, SetData):
            return wire.SetData(path, op.data or None, op.version)
        if isinstance(op, Delete):
            return wire.Delete(path, op.version)
        assert isinstance(op, Check), op
        return wire.CheckVersion(path, op.version)

    def _acl(self, path: str) -> list[ACL]:
        return [
            ACL(acl.permissions, Id(acl.scheme, acl.identity))
            for acl in default_acls(path, self._config.set_acl)
        ]

    def _results(self, ops: Sequence[Op], values: Sequence[Any]) -> list[OpResult]:
        results: list[OpResult] = []
        for op, value in zip(ops, values, strict=True):
            if isinstance(op, Create):
                results.append(value[len(self._config.chroot) :])
            else:
                results.append(_stat(value) if isinstance(op, SetData) else None)
        return results

    def _live_session(self, path: str) -> Session:
        if self._session is None:
            raise SessionExpired(path)
        return self._session

    async def _open(self) -> None:
        session = Session(self._config, self._state_changed, self._make_client, self.on_answer)
        try:
            # Wait for an answer, not only for the connection: the login comes between them.
            await asyncio.wait_for(
                session.read(wire.Exists, "/"), self._config.connection_timeout_ms / 1000
            )
            self._session, self._session_id = session, session.session_id
        except TimeoutError:
            reason = f" ({session.problem})" if session.problem else ""
            raise ZooKeeperUnavailable(
                f"ZooKeeper at {','.join(self._config.hosts)} cannot be reached: no answer within"
                f" zookeeper.connection.timeout.ms={self._config.connection_timeout_ms}{reason}"
            ) from None
        except SessionExpired:
            hosts = ",".join(self._config.hosts)
            if session.ended_by is ConnectionState.AUTH_FAILED:
                raise ZooKeeperAuthFailed(f"ZooKeeper at {hosts} refused the login") from None
            raise ZooKeeperUnavailable(f"ZooKeeper at {hosts} ended the session") from None
        finally:
            if self._session is not session:
                await session.close()

    def _state_changed(self, state: ConnectionState) -> None:
        self.is_connected = state is ConnectionState.CONNECTED
        if self.on_connection_state is not None:
            self.on_connection_state(state)
        ended = state in (ConnectionState.EXPIRED, ConnectionState.AUTH_FAILED)
        if ended and self._session is not None and self.on_session_expired is not None:
            self.on_session_expired()

    async def _make_chroot(self) -> None:
        """Create the missing nodes of the chroot's path, top down."""
        session = self._live_session("/")
        names = self._config.chroot.split("/")[1:]
        for depth in range(1, len(names) + 1):
            path = "/" + "/".join(names[:depth])
            # Checked first: ZooKeeper refuses a client without permission to create nodes, even if
            # the node exists.
            if await session.send(path, wire.Exists(path, None)) is None:
                with contextlib.suppress(NodeExists):
                    await session.send(path, wire.Create(path, None, self._acl(path), 0))


def _stat(stat: Any) -> ZnodeStat:
    return ZnodeStat(
        stat.czxid, stat.mzxid, stat.ctime, stat.mtime, stat.version, stat.ephemeralOwner
    )
