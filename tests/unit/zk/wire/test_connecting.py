"""The connect request with and without the read-only flag."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kazoo.protocol.serialization import Connect

from kafkapy.zk.wire.connecting import (
    CONNECT_REPLY,
    CONNECT_REQUEST,
    ConnectReply,
    ConnectRequest,
)
from kafkapy.zk.wire.jute import Malformed, Reader, encode

ints = st.integers(-(2**31), 2**31 - 1)
longs = st.integers(-(2**63), 2**63 - 1)
passwords = st.none() | st.binary()
flags = st.none() | st.booleans()


@given(st.builds(ConnectRequest, ints, longs, ints, longs, passwords, flags))
def test_a_request_is_read_back(request_: ConnectRequest) -> None:
    assert CONNECT_REQUEST.read(Reader(encode(CONNECT_REQUEST, request_))) == request_


@given(st.builds(ConnectReply, ints, ints, longs, passwords, flags))
def test_a_reply_is_read_back(reply: ConnectReply) -> None:
    assert CONNECT_REPLY.read(Reader(encode(CONNECT_REPLY, reply))) == reply


def test_kazoos_own() -> None:
    sent = Connect(0, 5, 10_000, 77, b"p" * 16, True).serialize()
    found = CONNECT_REQUEST.read(Reader(bytes(sent)))
    assert found == ConnectRequest(0, 5, 10_000, 77, b"p" * 16, True)
    old = CONNECT_REQUEST.read(Reader(bytes(sent[:-1])))
    assert old.read_only is None
    with pytest.raises(Malformed):
        CONNECT_REQUEST.read(Reader(bytes(sent[:-2])))
    answer = encode(CONNECT_REPLY, ConnectReply(0, 6000, 78, b"q" * 16, False))
    read, _ = Connect.deserialize(answer, 0)
    assert (read.time_out, read.session_id, read.passwd) == (6000, 78, b"q" * 16)
