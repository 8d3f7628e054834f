"""Replies: read back, and as kazoo reads them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kazoo.exceptions import BadVersionError, RolledBackError
from kazoo.protocol import serialization as kazoo

from kafkapy.zk.wire import replies
from kafkapy.zk.wire.codes import ErrorCode, OpCode
from kafkapy.zk.wire.jute import Malformed
from kafkapy.zk.wire.records import Acl, ClientInfo, Stat
from kafkapy.zk.wire.replies import (
    EmptyReply,
    MultiReply,
    NumberReply,
    PathReply,
    ReplyHeader,
    StatReply,
    WatcherEvent,
    decode_reply,
    encode_event,
    encode_reply,
)

ints = st.integers(-(2**31), 2**31 - 1)
longs = st.integers(-(2**63), 2**63 - 1)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
names = st.lists(texts, max_size=3).map(tuple)
stats = st.builds(Stat, *[longs] * 4, *[ints] * 3, longs, ints, ints, longs)
infos = st.lists(st.builds(ClientInfo, texts, texts), max_size=2).map(tuple)
acls = st.lists(st.builds(Acl, ints, texts, texts), max_size=2).map(tuple)
paths = st.builds(PathReply, texts)
created = st.builds(replies.CreatedReply, texts, stats)
parts = st.one_of(
    st.tuples(st.just(int(OpCode.CREATE)), paths),
    st.tuples(st.just(int(OpCode.CREATE2)), created),
    st.tuples(st.just(int(OpCode.SET_DATA)), st.builds(StatReply, stats)),
    st.tuples(st.just(int(OpCode.CHECK)), st.just(EmptyReply())),
    st.tuples(st.just(int(OpCode.ERROR)), st.builds(NumberReply, ints)),
)
bodies: st.SearchStrategy[Any] = st.one_of(
    st.tuples(st.just(OpCode.CREATE), paths),
    st.tuples(st.just(OpCode.CREATE2), created),
    st.tuples(st.just(OpCode.DELETE), st.just(EmptyReply())),
    st.tuples(st.just(OpCode.EXISTS), st.builds(StatReply, stats)),
    st.tuples(
        st.just(OpCode.GET_DATA),
        st.builds(replies.DataReply, st.none() | st.binary(max_size=9), stats),
    ),
    st.tuples(st.just(OpCode.GET_ACL), st.builds(replies.AclReply, acls, stats)),
    st.tuples(st.just(OpCode.GET_CHILDREN), st.builds(replies.NamesReply, names)),
    st.tuples(st.just(OpCode.GET_CHILDREN2), st.builds(replies.ChildrenReply, names, stats)),
    st.tuples(st.just(OpCode.MULTI), st.builds(MultiReply, st.lists(parts).map(tuple))),
    st.tuples(st.just(OpCode.ADD_WATCH), st.builds(NumberReply, ints)),
    st.tuples(st.just(OpCode.SASL), st.builds(replies.SaslReply, st.none() | st.binary())),
    st.tuples(st.just(OpCode.WHO_AM_I), st.builds(replies.WhoAmIReply, infos)),
)


@given(ints, longs, bodies)
def test_a_reply_is_read_back(xid: int, zxid: int, case: tuple[OpCode, Any]) -> None:
    op, body = case
    header = ReplyHeader(xid, zxid, 0)
    assert decode_reply(op, encode_reply(header, op, body)) == (header, body)


def test_an_error_is_its_header_alone() -> None:
    header = ReplyHeader(1, 2, ErrorCode.NONODE)
    data = encode_reply(header)
    assert len(data) == 16
    assert decode_reply(OpCode.GET_DATA, data) == (header, None)


def test_kazoo_reads_a_failed_multi() -> None:
    results = tuple((int(OpCode.ERROR), NumberReply(code)) for code in (0, -103, -2))
    data = encode_reply(ReplyHeader(1, 2, 0), OpCode.MULTI, MultiReply(results))
    found = kazoo.Transaction.deserialize(data, 16)
    assert [type(each) for each in found] == [RolledBackError, BadVersionError, found[2].__class__]


def test_kazoo_reads_an_event() -> None:
    data = encode_event(-1, WatcherEvent(3, 3, "/a"))
    assert kazoo.reply_header_struct.unpack_from(data) == (-1, -1, 0)
    event, end = kazoo.Watch.deserialize(data, 16)
    assert (event, end) == ((3, 3, "/a"), len(data))


def test_a_part_that_no_multi_has() -> None:
    data = encode_reply(ReplyHeader(1, 2, 0)) + b"\0\0\0\x07\0\0\0\0\0"
    with pytest.raises(Malformed, match="Operation 7"):
        decode_reply(OpCode.MULTI, data)
