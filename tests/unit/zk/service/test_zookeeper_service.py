"""Sessions, durability and clients that do not behave, without a socket."""

from __future__ import annotations

import logging

import pytest
from puresasl.client import SASLClient

from kafkapy.zk.service import zookeeper_service
from kafkapy.zk.service.settings import ServiceSettings, settings_from
from kafkapy.zk.wire.codes import ErrorCode, EventType, OpCode
from kafkapy.zk.wire.connecting import CONNECT_REPLY, CONNECT_REQUEST, ConnectReply, ConnectRequest
from kafkapy.zk.wire.frames import encode_frame
from kafkapy.zk.wire.jute import Reader, encode
from kafkapy.zk.wire.records import Acl
from kafkapy.zk.wire.replies import SaslReply, StatReply
from kafkapy.zk.wire.requests import (
    AuthRequest,
    EmptyRequest,
    PathRequest,
    SaslRequest,
    SetDataRequest,
    WatchedRequest,
    WatchKindRequest,
    encode_request,
)
from tests.harness.cores.socketless_zookeeper import Client, SocketlessServer


def test_a_session_gets_a_password_and_a_timeout_within_the_limits() -> None:
    desk = SocketlessServer()
    granted = [desk.client(timeout_ms=ms).session for ms in (1, 10_000, 10**9)]
    assert [each.timeout_ms for each in granted] == [6000, 10_000, 60_000]
    assert len({each.session_id for each in granted}) == 3
    assert len({each.password for each in granted}) == 3
    assert all(len(each.password or b"") == 16 for each in granted)


def test_a_client_that_sends_no_read_only_flag_gets_none() -> None:
    client = Client(SocketlessServer())
    client.send_bytes(encode_frame(encode(CONNECT_REQUEST, ConnectRequest(0, 0, 9000, 0, b""))))
    reply = CONNECT_REPLY.read(Reader(client.next_frame()))
    assert (reply.timeout_ms, reply.read_only) == (9000, None)


def test_a_session_goes_on_with_its_password_only() -> None:
    desk = SocketlessServer()
    client = desk.client()
    client.create("/e", flags=1)
    thief = desk.client(client.session._replace(password=b"x" * 16))
    assert thief.session == ConnectReply(0, 0, 0, bytes(16), False)
    assert thief.connection.is_closing
    assert not client.connection.is_closing, "the owner keeps its connection"
    again = desk.client(client.session)
    assert again.session.session_id == client.session.session_id
    assert client.connection.is_closing, "a session has one connection"
    assert again.exists("/e").stat.ephemeral_owner == client.session.session_id
    again.call(OpCode.CLOSE_SESSION)
    assert desk.nodes == {}
    assert desk.client(client.session).session.session_id == 0


def test_a_session_that_is_silent_expires_with_its_ephemerals() -> None:
    desk = SocketlessServer()
    silent, other = desk.client(timeout_ms=6000), desk.client(timeout_ms=60_000)
    silent.create("/e", flags=1)
    other.exists("/e", watch=True)
    desk.tick(6000)
    assert other.take_events() == []
    silent.call(OpCode.PING)
    desk.tick(6000)
    assert other.take_events() == []
    desk.tick(3000)
    assert other.take_events() == [(EventType.NODE_DELETED, "/e")]
    assert silent.connection.is_closing
    assert desk.client(silent.session).session.session_id == 0


def test_sessions_and_ephemerals_survive_a_kill() -> None:
    desk = SocketlessServer()
    client = desk.client(timeout_ms=9000)
    client.create("/e", b"mine", 1)
    client.create("/p", None)
    desk.restart()
    assert desk.nodes == {"/e": b"mine", "/p": None}
    back = desk.client(client.session, timeout_ms=9000)
    assert back.session.session_id == client.session.session_id
    desk.restart()
    desk.tick(9000)
    assert "/e" in desk.nodes
    desk.tick(3000)
    assert desk.nodes == {"/p": None}
    desk.restart()
    assert desk.nodes == {"/p": None}


def test_zxids_go_on_and_refused_writes_have_theirs() -> None:
    """A client that has seen a zxid would not be served by a server that has not."""
    desk = SocketlessServer()
    client = desk.client()
    assert client.create("/no/x") == ErrorCode.NONODE
    seen = desk.service.tree.zxid
    assert seen == 2
    desk.restart()
    assert desk.service.tree.zxid == seen
    late = Client(desk)
    hello = ConnectRequest(0, seen + 1, 9000, 0, b"", False)
    late.send_bytes(encode_frame(encode(CONNECT_REQUEST, hello)))
    assert (late.raw, late.connection.is_closing) == (b"", True)


def test_nothing_is_answered_before_it_is_durable() -> None:
    desk = SocketlessServer()
    one, two = desk.client(), desk.client()
    size = len(desk.file.data)
    service = desk.service
    service.handle_data(one.connection, one.frame(OpCode.SET_DATA, SetDataRequest("/", b"1", -1)))
    service.handle_data(two.connection, two.frame(OpCode.GET_DATA, WatchedRequest("/", False)))
    service.handle_data(two.connection, two.frame(OpCode.SET_DATA, SetDataRequest("/", b"2", -1)))
    assert len(desk.file.data) == size
    desk.file.fail = True
    with pytest.raises(OSError):
        service.commit()
    assert one.raw[-4:] != b"1"
    desk.file.fail = False
    desk.restart()
    assert desk.service.tree.nodes["/"].data == b"", "what was not answered did not happen"


def test_one_turn_is_one_write_and_tears_as_one() -> None:
    desk = SocketlessServer()
    one, two = desk.client(), desk.client()
    one.create("/a")
    whole = len(desk.file.data)
    for client, data in ((one, b"1"), (two, b"2"), (one, b"3")):
        frame = client.frame(OpCode.SET_DATA, SetDataRequest("/a", data, -1))
        desk.service.handle_data(client.connection, frame)
    desk.turn()
    data = desk.file.data
    for size in range(whole, len(data)):
        desk.file.data = data[:size]
        desk.restart()
        assert desk.nodes == {"/a": b""}, f"cut at {size}"
    desk.file.data = data
    desk.restart()
    assert desk.nodes == {"/a": b"3"}


def test_authentication_with_an_unknown_scheme_ends_the_connection() -> None:
    client = SocketlessServer().client()
    assert client.call(OpCode.AUTH, AuthRequest(0, "sasl", b"")) == ErrorCode.AUTHFAILED
    assert client.connection.is_closing
    client = SocketlessServer().client()
    assert client.call(OpCode.SASL, SaslRequest(b"")) == ErrorCode.AUTHFAILED
    assert client.connection.is_closing


def test_a_client_without_a_login_cannot_fill_the_memory_with_identities() -> None:
    required = {"sessionRequireClientSASLAuth": "true"}
    desk = SocketlessServer(settings_from(required, {"kafka": "secret"}))
    client = desk.client()
    answers = [
        client.call(OpCode.AUTH, AuthRequest(0, "digest", b"%d:x" % (number // 2)))
        for number in range(2 * zookeeper_service.IDENTITIES_MAX - 1)
    ]
    assert ErrorCode.AUTHFAILED not in answers[:-1], "an identity is kept once"
    assert answers[-1] == ErrorCode.AUTHFAILED
    assert client.connection.is_closing
    assert len(client.connection.identities) == zookeeper_service.IDENTITIES_MAX
    client = desk.client()
    long = b"u" * zookeeper_service.IDENTITY_CHARS_MAX
    assert client.call(OpCode.AUTH, AuthRequest(0, "digest", long + b":x")) == ErrorCode.AUTHFAILED
    assert client.connection.is_closing
    assert list(client.connection.identities) == [("ip", "127.0.0.1")]


def test_a_long_password_of_a_digest_is_an_identity_as_any_other() -> None:
    client = SocketlessServer().client()
    client.call(OpCode.AUTH, AuthRequest(0, "digest", b"user:" + b"x" * 100_000))
    assert [scheme for scheme, _ in client.identities()] == ["ip", "digest"]


def log_in(client: Client, user: str, password: str) -> object:
    """The last answer of a SASL login."""
    kazoo = SASLClient(
        *("zk-sasl-md5", "zookeeper", "DIGEST-MD5"), username=user, password=password
    )
    token = kazoo.process()
    while not kazoo.complete:
        found = client.call(OpCode.SASL, SaslRequest(token))
        if not isinstance(found, SaslReply):
            return found
        token = kazoo.process(found.token)
    return client.identities()


def test_a_login_owns_what_it_makes() -> None:
    settings = settings_from({}, {"kafka": "secret"})
    desk = SocketlessServer(settings)
    owner, other = desk.client(), desk.client()
    assert log_in(owner, "kafka", "secret") == [("ip", "127.0.0.1"), ("sasl", "kafka")]
    assert owner.create("/mine", b"", acl=(Acl(31, "auth", ""),)) == "/mine"
    assert owner.create("/named", b"", acl=(Acl(31, "sasl", "kafka"),)) == "/named"
    for path in ("/mine", "/named"):
        set_data = SetDataRequest(path, b"x", -1)
        assert other.call(OpCode.SET_DATA, set_data) == ErrorCode.NOAUTH
        assert isinstance(owner.call(OpCode.SET_DATA, set_data), StatReply)
    assert other.create("/no", b"", acl=(Acl(31, "auth", ""),)) == ErrorCode.INVALIDACL
    desk.restart()
    again = desk.client()
    assert again.call(OpCode.SET_DATA, set_data) == ErrorCode.NOAUTH
    log_in(again, "kafka", "secret")
    assert isinstance(again.call(OpCode.SET_DATA, set_data), StatReply)


@pytest.mark.parametrize(
    ("required", "error"),
    [("false", ErrorCode.AUTHFAILED), ("true", ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH)],
)
def test_a_wrong_password_ends_the_connection(required: str, error: ErrorCode) -> None:
    given = {"sessionRequireClientSASLAuth": required}
    client = SocketlessServer(settings_from(given, {"kafka": "secret"})).client()
    assert log_in(client, "kafka", "wrong") == error
    assert client.connection.is_closing


def test_a_user_name_with_a_line_break_forges_no_line(caplog: pytest.LogCaptureFixture) -> None:
    client = SocketlessServer(settings_from({}, {"kafka": "secret"})).client()
    log_in(client, "x\n[2026-11-28 00:00:00,000] INFO shut down\x1b[8m", "wrong")
    [record] = caplog.records
    assert record.getMessage().endswith(r"x\n[2026-11-28 00:00:00,000] INFO shut down\x1b[8m")


def test_where_a_login_is_required_nothing_goes_without() -> None:
    given = {"sessionRequireClientSASLAuth": "true"}
    desk = SocketlessServer(settings_from(given, {"kafka": "secret"}))
    client = desk.client()
    assert client.create("/a") == ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH
    assert client.connection.is_closing
    assert desk.nodes == {}
    client = desk.client()
    client.call(OpCode.AUTH, AuthRequest(0, "digest", b"kafka:secret"))
    assert client.exists("/") == ErrorCode.SESSIONCLOSEDREQUIRESASLAUTH
    client = desk.client()
    log_in(client, "kafka", "secret")
    assert client.create("/a") == "/a"


def test_the_subject_of_a_certificate_is_an_identity() -> None:
    desk = SocketlessServer(settings_from({}, has_client_certificates=True))
    owner = Client(desk, subject="CN=kafka,O=acme")
    owner.connect()
    assert owner.create("/mine", b"", acl=(Acl(31, "auth", ""),)) == "/mine"
    acl = owner.call(OpCode.GET_ACL, PathRequest("/mine")).acl
    assert acl == (Acl(31, "x509", "CN=kafka,O=acme"),)
    data = WatchedRequest("/mine", False)
    assert desk.client().call(OpCode.GET_DATA, data) == ErrorCode.NOAUTH
    assert owner.call(OpCode.GET_DATA, data).data == b""


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\n",
        b"\xff\xff\xff\xff",
        b"\0\x10\0\0",
        encode_frame(b""),
        encode_frame(b"\0" * 20),
    ],
)
def test_garbage_closes_with_one_line(garbage: bytes, caplog: pytest.LogCaptureFixture) -> None:
    desk = SocketlessServer()
    client = Client(desk)
    with caplog.at_level(logging.WARNING, "kafkapy.zk.service"):
        client.send_bytes(garbage + b"more")
        client.send_bytes(b"and more")
    assert client.connection.is_closing
    assert client.raw == b""
    [line] = caplog.messages
    assert line.startswith("Closing the connection of /127.0.0.1:4711: ")


def test_a_request_that_is_cut_is_answered_and_ends_the_connection() -> None:
    desk = SocketlessServer()
    client = desk.client()
    whole = encode_request(1, OpCode.SET_DATA, SetDataRequest("/", b"x", -1))
    client.send_bytes(encode_frame(whole[:-2]))
    assert client.reply(OpCode.SET_DATA) == ErrorCode.MARSHALLINGERROR
    assert client.connection.is_closing
    assert desk.service.tree.nodes["/"].data == b""


def test_an_unknown_operation_ends_the_connection() -> None:
    client = SocketlessServer().client()
    client.send_bytes(encode_frame(b"\0\0\0\1\0\0\0\x63"))
    assert client.reply(OpCode.PING) == ErrorCode.UNIMPLEMENTED
    assert client.connection.is_closing


def test_too_many_connections_of_one_address() -> None:
    desk = SocketlessServer(ServiceSettings(max_connections=2))
    first, _ = Client(desk), Client(desk)
    assert desk.service.add_connection("127.0.0.1", 1) is None
    assert desk.service.add_connection("127.0.0.2", 1) is not None
    desk.service.remove_connection(first.connection)
    assert desk.service.add_connection("127.0.0.1", 1) is not None


def test_a_connection_without_a_session_does_not_stay() -> None:
    desk = SocketlessServer()
    idle = Client(desk)
    desk.tick(9000)
    assert not idle.connection.is_closing
    desk.tick(3000)
    assert idle.connection.is_closing


def test_requests_wait_while_replies_are_not_read() -> None:
    desk = SocketlessServer()
    client = desk.client()
    client.create("/big", b"x" * 900_000)
    read = client.frame(OpCode.GET_DATA, WatchedRequest("/big", False))
    desk.service.handle_data(client.connection, read * 50)
    assert client.connection.is_stalled
    assert client.connection.waiting_bytes() < 3_000_000
    desk.turn()
    assert not client.connection.is_stalled
    client.connection.unsent_bytes = lambda: zookeeper_service.UNSENT_MAX_BYTES + 1
    before = client.connection.received
    desk.service.handle_data(client.connection, read * 50)
    assert client.connection.is_stalled
    assert client.connection.received == before


def test_notifications_that_nobody_reads_end_the_connection() -> None:
    desk = SocketlessServer()
    deaf, other = desk.client(), desk.client()
    deaf.call(OpCode.ADD_WATCH, WatchKindRequest("/", 1))
    deaf.connection.unsent_bytes = lambda: zookeeper_service.UNREAD_MAX_BYTES + 1
    other.create("/a")
    assert deaf.connection.is_closing
    assert not other.connection.is_closing


def test_many_requests_of_one_client_leave_others_their_turn() -> None:
    desk = SocketlessServer()
    busy, other = desk.client(), desk.client()
    ping = busy.frame(OpCode.PING, EmptyRequest())
    desk.service.handle_data(busy.connection, ping * 250)
    assert busy.connection.is_stalled
    assert other.create("/a") == "/a"
    desk.turn()
    assert not busy.connection.is_stalled
    assert busy.connection.received == 251


def test_a_fault_of_a_request_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    desk = SocketlessServer()
    client = desk.client()
    zxid = desk.service.tree.zxid

    def fail(*_: object) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr("kafkapy.zk.service.writes.stat_of", fail)
    with pytest.raises(RuntimeError):
        client.call(OpCode.SET_DATA, SetDataRequest("/", b"x", -1))
    assert desk.service.tree.nodes["/"].data == b""
    assert desk.service.tree.zxid == zxid
    desk.restart()
    assert desk.service.tree.zxid == zxid
