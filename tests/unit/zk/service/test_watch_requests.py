"""A client that comes back hears what it missed, and no more."""

from __future__ import annotations

from kafkapy.zk.wire.codes import EventType, OpCode
from kafkapy.zk.wire.requests import SetDataRequest, SetWatchesRequest
from tests.harness.cores.socketless_zookeeper import SocketlessServer


def test_what_was_missed_is_told_and_the_rest_is_watched() -> None:
    desk = SocketlessServer()
    other, client = desk.client(), desk.client()
    for path in ("/same", "/changed", "/parent"):
        other.create(path)
    seen = desk.service.tree.zxid
    desk.service.remove_connection(client.connection)
    other.call(OpCode.SET_DATA, SetDataRequest("/changed", b"x", -1))
    other.create("/parent/child")
    other.create("/came")
    back = desk.client(client.session)
    data = ("/same", "/changed", "/gone")
    watches = SetWatchesRequest(seen, data, ("/came", "/later"), ("/parent", "/same"))
    back.call(OpCode.SET_WATCHES, watches)
    assert back.take_events() == [
        (EventType.NODE_DATA_CHANGED, "/changed"),
        (EventType.NODE_DELETED, "/gone"),
        (EventType.NODE_CREATED, "/came"),
        (EventType.NODE_CHILDREN_CHANGED, "/parent"),
    ]
    other.create("/later")
    other.create("/same/x")
    other.call(OpCode.SET_DATA, SetDataRequest("/same", b"y", -1))
    other.call(OpCode.SET_DATA, SetDataRequest("/changed", b"y", -1))
    assert back.take_events() == [
        (EventType.NODE_CREATED, "/later"),
        (EventType.NODE_CHILDREN_CHANGED, "/same"),
        (EventType.NODE_DATA_CHANGED, "/same"),
    ]
