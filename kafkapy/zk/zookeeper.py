"""The ZooKeeper port: eight methods, their operations and their errors.

    ZooKeeperError
     +-- NoNode            the node (or the parent of a node to create) is not there
     +-- NodeExists        the node to create is there already
     +-- BadVersion        a conditional set, delete or check met another data version
     +-- NotEmpty          the node to delete has children
     +-- SessionExpired    the session is over, with its ephemerals; it cannot be used any more
     +-- StoreUnavailable  the embedded store cannot write its file: nothing happened

`embedded.memory` is the adapter of the embedded store, `kazoo.adapter` that of an ensemble, and
`service.local_client` that of a store that a broker serves. Data `b""` is ZooKeeper's null, as
Kafka writes "empty" nodes. Watches fire once. A watch that is passed again before it fired still
fires once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, NamedTuple, Protocol

from kafkapy.common.errors import KafkapyError

ANY_VERSION: Final = -1


class ZooKeeperError(KafkapyError):
    """A ZooKeeper operation failed. `path` is its node; in a multi, the first failing one's."""

    def __init__(self, path: str, message: str | None = None) -> None:
        super().__init__(message or f"{type(self).__name__} for {path}")
        self.path = path


class NoNode(ZooKeeperError):
    """The node, or the parent of a node to create, does not exist."""


class NodeExists(ZooKeeperError):
    """The node to create exists."""


class BadVersion(ZooKeeperError):
    """The node's data version is not the expected one."""


class NotEmpty(ZooKeeperError):
    """The node has children."""


class SessionExpired(ZooKeeperError):
    """The session is over."""


class StoreUnavailable(ZooKeeperError):
    """The embedded store's file cannot be written; the operation did not happen."""


class CreateMode(Enum):
    """The lifetime of a node, and whether its name gets a sequence number."""

    PERSISTENT = "persistent"
    EPHEMERAL = "ephemeral"
    PERSISTENT_SEQUENTIAL = "persistent_sequential"


class ZnodeStat(NamedTuple):
    """ZooKeeper's statistics of a node; `czxid` is the transaction that created it.

    `children_zxid` is the transaction that last created or deleted a child (ZooKeeper: pzxid). Only
    `exists` returns it.
    """

    czxid: int
    mzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    ephemeral_owner: int = 0
    children_zxid: int = 0


class Znode(NamedTuple):
    """A node's data with its stat."""

    data: bytes
    stat: ZnodeStat


class WatchEventType(Enum):
    """Kinds of changes of a watched node."""

    CREATED = "created"
    DELETED = "deleted"
    DATA_CHANGED = "data_changed"
    CHILDREN_CHANGED = "children_changed"


class WatchEvent(NamedTuple):
    """The event that a watch is called with."""

    kind: WatchEventType
    path: str


Watch = Callable[[WatchEvent], None]


class Create(NamedTuple):
    """Create a node; the result is its path (of a sequential node, with the number)."""

    path: str
    data: bytes
    mode: CreateMode = CreateMode.PERSISTENT


class SetData(NamedTuple):
    """Replace a node's data; the result is its new stat."""

    path: str
    data: bytes
    version: int = ANY_VERSION


class Delete(NamedTuple):
    """Delete a childless node."""

    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    """Fail unless the node has this data version."""

    path: str
    version: int


Op = Create | SetData | Delete | Check
OpResult = str | ZnodeStat | None


class Get(NamedTuple):
    """A read in a pipeline."""

    path: str
    watch: Watch | None = None


class Multi(NamedTuple):
    """A transaction in a pipeline."""

    ops: Sequence[Op]


Request = Get | Multi
Response = Znode | list[OpResult] | ZooKeeperError


class ZooKeeper(Protocol):
    """One session with ZooKeeper. Every method may raise SessionExpired, and ZooKeeperError itself
    for errors without a class here, such as a write above ZooKeeper's limit.
    """

    @property
    def session_id(self) -> int:
        """The id of the current session, never 0."""
        ...

    async def get(self, path: str, watch: Watch | None = None) -> Znode:
        """A node's data and stat. Raises NoNode (and then leaves no watch)."""
        ...

    async def exists(self, path: str, watch: Watch | None = None) -> ZnodeStat | None:
        """A node's stat. The watch also fires when a missing node is created."""
        ...

    async def children(self, path: str, watch: Watch | None = None) -> list[str]:
        """The names of a node's children, sorted. Raises NoNode."""
        ...

    async def create(self, path: str, data: bytes, mode: CreateMode = CreateMode.PERSISTENT) -> str:
        """Create a node. Returns its path. Raises NoNode (no parent) or NodeExists."""
        ...

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> ZnodeStat:
        """Replace a node's data. Raises NoNode or BadVersion."""
        ...

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        """Delete a node. Raises NoNode, BadVersion or NotEmpty."""
        ...

    async def multi(self, ops: Sequence[Op]) -> list[OpResult]:
        """Apply all operations or none. Raises the error of the first that fails."""
        ...

    async def pipeline(self, requests: Sequence[Request]) -> list[Response]:
        """Send independent requests at once. Returns each answer, or its error, in order."""
        ...
