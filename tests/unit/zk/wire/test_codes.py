"""The protocol's numbers are those that kazoo knows."""

from __future__ import annotations

from kazoo import exceptions
from kazoo.protocol import serialization, states

from kafkapy.zk.wire.codes import ErrorCode, EventType, OpCode


def test_operations_are_numbered_as_kazoo_numbers_them() -> None:
    named = {
        OpCode.CREATE: "Create",
        OpCode.DELETE: "Delete",
        OpCode.EXISTS: "Exists",
        OpCode.GET_DATA: "GetData",
        OpCode.SET_DATA: "SetData",
        OpCode.GET_ACL: "GetACL",
        OpCode.SET_ACL: "SetACL",
        OpCode.GET_CHILDREN: "GetChildren",
        OpCode.SYNC: "Sync",
        OpCode.PING: "Ping",
        OpCode.GET_CHILDREN2: "GetChildren2",
        OpCode.CHECK: "CheckVersion",
        OpCode.MULTI: "Transaction",
        OpCode.CREATE2: "Create2",
        OpCode.RECONFIG: "Reconfig",
        OpCode.AUTH: "Auth",
        OpCode.SASL: "SASL",
        OpCode.CLOSE_SESSION: "Close",
    }
    for op, name in named.items():
        assert getattr(serialization, name).type == op


def test_errors_and_events_are_kazoos() -> None:
    # Kazoo's name of this one is not ZooKeeper's.
    login = ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH
    assert exceptions.EXCEPTIONS[login] is exceptions.SessionClosedRequireSaslError
    for code in set(ErrorCode) - {ErrorCode.OK, login}:
        assert exceptions.EXCEPTIONS[code].__name__.upper().startswith(code.name)
    assert {kind.name.removeprefix("NODE_"): int(kind) for kind in EventType} == {
        "CREATED": 1,
        "DELETED": 2,
        "DATA_CHANGED": 3,
        "CHILDREN_CHANGED": 4,
    }
    assert states.EVENT_TYPE_MAP[EventType.NODE_CHILDREN_CHANGED] == states.EventType.CHILD
