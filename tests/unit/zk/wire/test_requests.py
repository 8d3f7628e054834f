"""Requests: read back, as kazoo writes them, and cut anywhere."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kazoo.protocol import serialization as kazoo
from kazoo.security import OPEN_ACL_UNSAFE

from kafkapy.zk.wire import requests
from kafkapy.zk.wire.codes import OpCode
from kafkapy.zk.wire.jute import Malformed
from kafkapy.zk.wire.records import Acl
from kafkapy.zk.wire.requests import (
    CreateRequest,
    MultiRequest,
    PathRequest,
    ReconfigRequest,
    SetAclRequest,
    SetDataRequest,
    SetWatchesRequest,
    VersionRequest,
    WatchedRequest,
    decode_body,
    decode_header,
    encode_request,
)

ints = st.integers(-(2**31), 2**31 - 1)
longs = st.integers(-(2**63), 2**63 - 1)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
datas = st.none() | st.binary(max_size=20)
names = st.lists(texts, max_size=3).map(tuple)
acls = st.lists(st.builds(Acl, ints, texts, texts), max_size=3).map(tuple)

SHAPES: dict[type, st.SearchStrategy[Any]] = {
    requests.CreateRequest: st.builds(CreateRequest, texts, datas, acls, ints),
    requests.CreateTtlRequest: st.builds(
        requests.CreateTtlRequest, texts, datas, acls, ints, longs
    ),
    requests.VersionRequest: st.builds(VersionRequest, texts, ints),
    requests.WatchedRequest: st.builds(WatchedRequest, texts, st.booleans()),
    requests.SetDataRequest: st.builds(SetDataRequest, texts, datas, ints),
    requests.PathRequest: st.builds(PathRequest, texts),
    requests.SetAclRequest: st.builds(SetAclRequest, texts, acls, ints),
    requests.ReconfigRequest: st.builds(ReconfigRequest, texts, texts, texts, longs),
    requests.WatchKindRequest: st.builds(requests.WatchKindRequest, texts, ints),
    requests.AuthRequest: st.builds(requests.AuthRequest, ints, texts, datas),
    requests.EmptyRequest: st.just(requests.EmptyRequest()),
    requests.SaslRequest: st.builds(requests.SaslRequest, datas),
}
OPS = {
    **dict.fromkeys((OpCode.CREATE, OpCode.CREATE2, OpCode.CREATE_CONTAINER), CreateRequest),
    OpCode.CREATE_TTL: requests.CreateTtlRequest,
    OpCode.DELETE: VersionRequest,
    OpCode.CHECK: VersionRequest,
    **dict.fromkeys((OpCode.EXISTS, OpCode.GET_DATA), WatchedRequest),
    **dict.fromkeys((OpCode.GET_CHILDREN, OpCode.GET_CHILDREN2), WatchedRequest),
    OpCode.SET_DATA: SetDataRequest,
    **dict.fromkeys((OpCode.GET_ACL, OpCode.SYNC, OpCode.GET_EPHEMERALS), PathRequest),
    **dict.fromkeys((OpCode.GET_ALL_CHILDREN_NUMBER, OpCode.DELETE_CONTAINER), PathRequest),
    OpCode.SET_ACL: SetAclRequest,
    OpCode.RECONFIG: ReconfigRequest,
    **dict.fromkeys((OpCode.CHECK_WATCHES, OpCode.REMOVE_WATCHES), requests.WatchKindRequest),
    OpCode.ADD_WATCH: requests.WatchKindRequest,
    OpCode.AUTH: requests.AuthRequest,
    OpCode.SASL: requests.SaslRequest,
    **dict.fromkeys((OpCode.PING, OpCode.WHO_AM_I), requests.EmptyRequest),
    OpCode.CLOSE_SESSION: requests.EmptyRequest,
}


def part(ops: tuple[OpCode, ...]) -> st.SearchStrategy[Any]:
    return st.sampled_from(ops).flatmap(lambda op: st.tuples(st.just(int(op)), SHAPES[OPS[op]]))


WRITES = (OpCode.CREATE, OpCode.CREATE2, OpCode.DELETE, OpCode.SET_DATA, OpCode.CHECK)
ALONE = sorted(set(OPS) - {OpCode.CHECK})
bodies = st.one_of(
    st.sampled_from(ALONE).flatmap(lambda op: st.tuples(st.just(op), SHAPES[OPS[op]])),
    st.tuples(
        st.just(OpCode.MULTI),
        st.builds(MultiRequest, st.lists(part(WRITES), max_size=4).map(tuple)),
    ),
    st.tuples(
        st.just(OpCode.MULTI_READ),
        st.builds(
            MultiRequest,
            st.lists(part((OpCode.GET_DATA, OpCode.GET_CHILDREN)), max_size=3).map(tuple),
        ),
    ),
    st.tuples(
        st.just(OpCode.SET_WATCHES),
        st.builds(SetWatchesRequest, longs, *[names] * 3, st.just(()), st.just(())),
    ),
    st.tuples(st.just(OpCode.SET_WATCHES2), st.builds(SetWatchesRequest, longs, *[names] * 5)),
)


def test_every_layout_is_tried() -> None:
    tried = {*OPS, OpCode.MULTI, OpCode.MULTI_READ, OpCode.SET_WATCHES, OpCode.SET_WATCHES2}
    assert tried - {OpCode.CHECK} == set(requests.BODIES)


@given(ints, bodies)
def test_a_request_is_read_back(xid: int, case: tuple[OpCode, Any]) -> None:
    op, body = case
    data = encode_request(xid, op, body)
    header, reader = decode_header(data)
    assert header == (xid, op)
    assert decode_body(op, reader) == body
    assert reader.at_end()
    for size in range(len(data)):
        with pytest.raises(Malformed):
            decode_body(op, decode_header(data[:size])[1])


@given(st.binary(max_size=80), st.sampled_from(sorted(requests.BODIES)))
def test_any_bytes_are_a_request_or_malformed(data: bytes, op: int) -> None:
    try:
        decode_body(op, decode_header(data)[1])
    except Malformed:
        pass


@pytest.mark.parametrize(
    ("sent", "body"),
    [
        (
            kazoo.Create("/a", b"x", OPEN_ACL_UNSAFE, 3),
            CreateRequest("/a", b"x", (Acl(31, "world", "anyone"),), 3),
        ),
        (kazoo.Delete("/a", -1), VersionRequest("/a", -1)),
        (kazoo.Exists("/ü", "watch"), WatchedRequest("/ü", True)),
        (kazoo.SetData("/a", None, 4), SetDataRequest("/a", None, 4)),
        (kazoo.GetChildren2("/a", None), WatchedRequest("/a", False)),
        (kazoo.Sync("/a"), PathRequest("/a")),
        (
            kazoo.Transaction([kazoo.CheckVersion("/a", 1), kazoo.Delete("/a", 2)]),
            MultiRequest(((13, VersionRequest("/a", 1)), (2, VersionRequest("/a", 2)))),
        ),
        (kazoo.Reconfig("a", "b", "", 7), ReconfigRequest("a", "b", "", 7)),
        (kazoo.SASL(b"token"), requests.SaslRequest(b"token")),
    ],
    ids=lambda case: type(case).__name__,
)
def test_kazoos_own(sent: Any, body: requests.Request) -> None:
    frame = requests.HEADER
    out = bytearray()
    frame.write(out, requests.RequestHeader(9, sent.type))
    header, reader = decode_header(bytes(out) + bytes(sent.serialize()))
    assert header.xid == 9
    assert decode_body(header.op, reader) == body


def test_only_writes_are_part_of_a_multi() -> None:
    reads = MultiRequest(((int(OpCode.GET_DATA), WatchedRequest("/a", False)),))
    data = encode_request(1, OpCode.MULTI_READ, reads)
    with pytest.raises(Malformed, match="Operation 4 cannot be part of a multi"):
        decode_body(OpCode.MULTI, decode_header(data)[1])
