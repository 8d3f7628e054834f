"""Writes: sequence numbers, ephemerals, all or nothing. The order of the checks is held by
test_conversations.py."""

from __future__ import annotations

import pytest

from kafkapy.zk.wire.codes import ErrorCode, OpCode
from kafkapy.zk.wire.replies import NumberReply
from kafkapy.zk.wire.requests import (
    CreateRequest,
    CreateTtlRequest,
    MultiRequest,
    Request,
    SetDataRequest,
    VersionRequest,
)
from tests.harness.cores.socketless_zookeeper import OPEN, SocketlessServer


def test_sequence_numbers_count_all_children_ever_made() -> None:
    client = SocketlessServer().client()
    client.create("/a")
    client.create("/a/plain")
    assert client.create("/a/s-", flags=2) == "/a/s-0000000001"
    client.call(OpCode.DELETE, VersionRequest("/a/s-0000000001", -1))
    assert client.create("/a/", flags=3) == "/a/0000000002"


@pytest.mark.parametrize(
    ("op", "body"),
    [
        (OpCode.CREATE_CONTAINER, CreateRequest("/c", b"", OPEN, 4)),
        (OpCode.CREATE, CreateRequest("/c", b"", OPEN, 4)),
        (OpCode.CREATE2, CreateRequest("/c", b"", OPEN, 5)),
        (OpCode.CREATE_TTL, CreateTtlRequest("/c", b"", OPEN, 5, 1000)),
    ],
)
def test_containers_and_nodes_with_a_time_to_live_are_refused(op: OpCode, body: Request) -> None:
    client = SocketlessServer().client()
    assert client.call(op, body) == ErrorCode.UNIMPLEMENTED
    assert client.create("/c") == "/c", "the connection goes on"


def test_a_failed_multi_leaves_no_trace() -> None:
    desk = SocketlessServer()
    client = desk.client()
    client.create("/a", b"1")
    before = desk.service.tree.nodes.copy()
    client.exists("/x", watch=True)
    ops: list[tuple[int, Request]] = [
        (int(OpCode.CREATE), CreateRequest("/x", b"", OPEN, 1)),
        (int(OpCode.CREATE), CreateRequest("/x", b"", OPEN, 0)),
        (int(OpCode.SET_DATA), SetDataRequest("/a", b"2", -1)),
    ]
    found = client.call(OpCode.MULTI, MultiRequest(tuple(ops)))
    codes = [part.number for _, part in found.results if isinstance(part, NumberReply)]
    assert codes == [ErrorCode.OK, ErrorCode.NODEEXISTS, ErrorCode.RUNTIMEINCONSISTENCY]
    assert desk.service.tree.nodes == before
    assert client.take_events() == []
    desk.restart()
    assert desk.nodes == {"/a": b"1"}
