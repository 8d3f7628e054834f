"""Numbers of ZooKeeper's protocol: operations, errors, events, permissions."""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Final


class OpCode(IntEnum):
    """`ZooDefs.OpCode`."""

    CREATE = 1
    DELETE = 2
    EXISTS = 3
    GET_DATA = 4
    SET_DATA = 5
    GET_ACL = 6
    SET_ACL = 7
    GET_CHILDREN = 8
    SYNC = 9
    PING = 11
    GET_CHILDREN2 = 12
    CHECK = 13
    MULTI = 14
    CREATE2 = 15
    RECONFIG = 16
    CHECK_WATCHES = 17
    REMOVE_WATCHES = 18
    CREATE_CONTAINER = 19
    DELETE_CONTAINER = 20
    CREATE_TTL = 21
    MULTI_READ = 22
    AUTH = 100
    SET_WATCHES = 101
    SASL = 102
    GET_EPHEMERALS = 103
    GET_ALL_CHILDREN_NUMBER = 104
    SET_WATCHES2 = 105
    ADD_WATCH = 106
    WHO_AM_I = 107
    CLOSE_SESSION = -11
    ERROR = -1


class ErrorCode(IntEnum):
    """`KeeperException.Code`."""

    OK = 0
    RUNTIMEINCONSISTENCY = -2
    MARSHALLINGERROR = -5
    UNIMPLEMENTED = -6
    BADARGUMENTS = -8
    NONODE = -101
    NOAUTH = -102
    BADVERSION = -103
    NOCHILDRENFOREPHEMERALS = -108
    NODEEXISTS = -110
    NOTEMPTY = -111
    SESSIONEXPIRED = -112
    INVALIDACL = -114
    AUTHFAILED = -115
    NOWATCHER = -121
    RECONFIGDISABLED = -123
    SESSIONCLOSEDREQUIRESASLAUTH = -124


class EventType(IntEnum):
    """`Watcher.Event.EventType`."""

    NODE_CREATED = 1
    NODE_DELETED = 2
    NODE_DATA_CHANGED = 3
    NODE_CHILDREN_CHANGED = 4


class Permission(IntFlag):
    """`ZooDefs.Perms`."""

    READ = 1
    WRITE = 2
    CREATE = 4
    DELETE = 8
    ADMIN = 16
    ALL = 31


class CreateFlag(IntEnum):
    """`CreateMode`, as its flag."""

    PERSISTENT = 0
    EPHEMERAL = 1
    PERSISTENT_SEQUENTIAL = 2
    EPHEMERAL_SEQUENTIAL = 3
    CONTAINER = 4
    PERSISTENT_WITH_TTL = 5
    PERSISTENT_SEQUENTIAL_WITH_TTL = 6


class WatcherType(IntEnum):
    """`Watcher.WatcherType`, the kinds of watches in `removeWatches` and `checkWatches`."""

    CHILDREN = 1
    DATA = 2
    ANY = 3
    PERSISTENT = 4
    PERSISTENT_RECURSIVE = 5


class AddWatchMode(IntEnum):
    """`AddWatchMode`."""

    PERSISTENT = 0
    PERSISTENT_RECURSIVE = 1


SYNC_CONNECTED: Final = 3
"""`KeeperState.SyncConnected`, in every event that a server sends."""

NOTIFICATION_XID: Final = -1
PING_XID: Final = -2
NO_ZXID: Final = -1
