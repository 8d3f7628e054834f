"""Only authenticated clients are served, and their sessions end."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Any

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.framing import ReceiveBuffers
from kafkapy.protocol.headers import RequestHeader, decode_response, encode_request
from kafkapy.protocol.messages import response_class
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest
from kafkapy.protocol.messages.list_groups import ListGroupsRequest
from kafkapy.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeRequest
from kafkapy.protocol.sasl_authenticator import SaslMechanism
from kafkapy.protocol.schema import Message
from kafkapy.protocol.server_connection import ServerConnection
from kafkapy.security.sasl.client import conversation
from kafkapy.security.sasl.jaas import Credentials
from kafkapy.security.sasl.scram import ScramCredential, ScramMechanism
from kafkapy.security.sasl.server import PlainServer, ScramServer, TokenCredential
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.network.connection_table import ConnectionTable
from kafkapy.server.network.sasl_connection import SaslConnection
from kafkapy.server.requests.outcomes import ANONYMOUS
from kafkapy.server.security.listener_security import SaslSettings
from tests.harness.scripted.scripted_node import in_loop
from tests.harness.scripted.transports import FakeTransport

RECEIVE_BYTES_MAX, REQUEST_BYTES_MAX = 150, 1000


class FakeDispatcher:
    """Notes the API keys and principals of what reaches it."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, str]] = []

    def dispatch(self, connection: SaslConnection, request: Any) -> Any:
        self.seen.append((request.header.api_key, connection.principal))
        return [b"<served>"]

    def encode(self, header: RequestHeader, response: Any) -> Any:
        return response


class Waiting:
    """Those that have not logged in, without limits."""

    def __init__(self) -> None:
        self.logins: set[SaslConnection] = set()

    def begin(self, login: SaslConnection) -> None:
        self.logins.add(login)

    def end(self, login: SaslConnection) -> None:
        self.logins.discard(login)


class Client:
    """One connection with everything around it fake."""

    def __init__(
        self,
        session_max_ms: int = 0,
        delay_s: float = 0.0,
        mechanism: SaslMechanism | None = None,
        server: type[PlainServer] = PlainServer,
        properties: dict[str, str] | None = None,
    ) -> None:
        self.now_ms = 0
        self.dispatcher = FakeDispatcher()
        self.transport = FakeTransport()
        users = {"alice": "secret", "bob": "other"}
        mechanism = mechanism or SaslMechanism(lambda: server(users), session_max_ms)
        self.table = ConnectionTable(KafkaConfig(properties or {}))
        self.table.unauthenticated = self.waiting = Waiting()  # type: ignore[assignment]
        self.connection = SaslConnection(
            "SASL",
            self.dispatcher,  # type: ignore[arg-type]
            self.table,
            ServerConnection(REQUEST_BYTES_MAX, ReceiveBuffers(4096)),
            lambda: self.now_ms,
            SaslSettings({"PLAIN": mechanism}, RECEIVE_BYTES_MAX, delay_s),
            REQUEST_BYTES_MAX,
        )
        self.connection.connection_made(self.transport)

    def sends(self, data: bytes) -> None:
        self.connection.get_buffer(-1)[: len(data)] = data
        self.connection.buffer_updated(len(data))

    def says(self, message: Message, version: int) -> None:
        self.transport.sent = b""
        self.sends(encode_request(message, version, 5, "c"))

    def answer(self, api: ApiKey, version: int) -> Any:
        return decode_response(response_class(api), version, self.transport.sent[4:])[1]

    def logs_in(self, token: bytes = b"\0alice\0secret") -> Any:
        self.says(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        assert self.answer(ApiKey.SASL_HANDSHAKE, 1).error_code == 0
        self.says(SaslAuthenticateRequest(auth_bytes=token), 2)

    def asks(self) -> bool:
        """Whether an ordinary request is served."""
        before = len(self.dispatcher.seen)
        self.says(ListGroupsRequest(), 0)
        return len(self.dispatcher.seen) > before


def test_a_login_comes_first_and_names_the_user() -> None:
    client = Client()
    client.says(ApiVersionsRequest(), 0)
    assert client.transport.sent == b"<served>"
    assert client.waiting.logins == {client.connection}
    client.logs_in()
    assert client.answer(ApiKey.SASL_AUTHENTICATE, 2).error_code == 0
    assert client.waiting.logins == set()
    assert client.asks()
    assert client.dispatcher.seen == [
        (ApiKey.API_VERSIONS, ANONYMOUS),
        (ApiKey.LIST_GROUPS, "User:alice"),
    ]
    assert client.table.logins.succeeded == {("SASL", "PLAIN"): 1}


def test_nothing_is_served_before(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def scenario() -> None:
        client = Client()
        assert not client.asks()
        assert not client.asks()  # what waits for its end does not come in by the back door
        while not client.transport.closing:
            await asyncio.sleep(0)
        assert client.transport.sent == b""
        assert client.table.logins.failed == {("SASL", ""): 1}

    in_loop(scenario)
    [line] = [r.getMessage() for r in caplog.records if r.name == "kafka.network.SocketServer"]
    assert line == (
        "Failed authentication with 10.0.0.1:1234 (Unexpected Kafka request of type LIST_GROUPS"
        " during SASL handshake.)"
    )


def test_a_client_cannot_write_lines_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def scenario() -> None:
        client = Client()
        client.says(SaslHandshakeRequest(mechanism="X\n[2026] FATAL " + "y" * 80), 1)
        while not client.transport.closing:
            await asyncio.sleep(0)

    in_loop(scenario)
    [line] = [r.getMessage() for r in caplog.records if r.name == "kafka.network.SocketServer"]
    assert "(Unsupported SASL mechanism X [2026] FATAL yyy" in line


def test_a_refusal_comes_after_the_delay_and_then_the_end() -> None:
    async def scenario() -> None:
        client = Client(delay_s=0.02)
        began_s = asyncio.get_running_loop().time()
        client.logs_in(b"\0alice\0wrong")
        assert client.transport.sent == b""
        while not client.transport.closing:
            await asyncio.sleep(0)
        # uvloop's time is in whole ms, whose difference as a float may be a little less.
        assert round(asyncio.get_running_loop().time() - began_s, 3) >= 0.02
        response = client.answer(ApiKey.SASL_AUTHENTICATE, 2)
        assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert client.connection.principal == ANONYMOUS
        assert client.table.logins.failed == {("SASL", "PLAIN"): 1}

    in_loop(scenario)


def test_a_client_that_goes_before_its_refusal() -> None:
    async def scenario() -> None:
        client = Client()
        client.logs_in(b"\0alice\0wrong")
        client.connection.connection_lost(None)
        # Timers of one delay go off in the order in which they were set.
        over = asyncio.Event()
        asyncio.get_running_loop().call_later(0.0, over.set)
        await over.wait()
        assert client.transport.sent == b""

    in_loop(scenario)


def test_large_requests_are_for_who_has_logged_in() -> None:
    large = encode_request(ListGroupsRequest(), 0, 1, "c" * 200)
    client = Client()
    client.sends(large)
    assert client.transport.closing
    client = Client()
    client.logs_in()
    client.sends(large)
    assert not client.transport.closing
    assert client.dispatcher.seen == [(ApiKey.LIST_GROUPS, "User:alice")]


def test_a_session_ends_unless_it_is_renewed() -> None:
    client = Client(session_max_ms=1000)
    client.logs_in()
    assert client.answer(ApiKey.SASL_AUTHENTICATE, 2).session_lifetime_ms == 1000
    client.now_ms = 1000
    assert client.asks()
    client.now_ms = 1500
    client.says(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    client.now_ms = 1540
    client.says(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 2)
    assert client.answer(ApiKey.SASL_AUTHENTICATE, 2).session_lifetime_ms == 1000
    client.now_ms = 2540
    assert client.asks()
    assert not client.table.logins.expired_killed
    client.now_ms = 2541
    assert not client.asks()
    assert client.transport.closing
    counts = client.table.logins
    assert counts.succeeded == counts.renewed == {("SASL", "PLAIN"): 1}
    assert counts.renewal_times["SASL"].recent_s == [0.04]
    assert counts.expired_killed == {"SASL": 1}


def test_a_session_ends_once() -> None:
    client = Client(session_max_ms=1000)
    client.logs_in()
    client.now_ms = 1001
    client.sends(encode_request(ListGroupsRequest(), 0, 5, "c") * 5)
    assert client.table.logins.expired_killed == {"SASL": 1}


def test_what_was_over_at_the_login_serves_no_longer() -> None:
    class Over(PlainServer):
        lifetime_ms = 0

    client = Client(server=Over)
    client.logs_in()
    assert client.answer(ApiKey.SASL_AUTHENTICATE, 2).session_lifetime_ms == 0
    client.now_ms = 1
    assert not client.asks()
    assert client.transport.closing


def test_a_session_is_not_renewed_by_another_user() -> None:
    async def scenario() -> None:
        client = Client(session_max_ms=1000)
        client.logs_in()
        client.logs_in(b"\0bob\0other")
        while not client.transport.closing:
            await asyncio.sleep(0)
        response = client.answer(ApiKey.SASL_AUTHENTICATE, 2)
        assert "Cannot change principals" in response.error_message
        assert client.connection.principal == "User:alice"
        counts = client.table.logins
        assert (counts.failed_to_renew, counts.failed) == ({("SASL", "PLAIN"): 1}, {})

    in_loop(scenario)


def test_without_sessions_a_second_login_is_an_ordinary_request() -> None:
    client = Client()
    client.logs_in()
    client.says(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert client.dispatcher.seen == [(ApiKey.SASL_HANDSHAKE, "User:alice")]


def test_a_token_is_known_by_its_connection() -> None:
    client = Client()
    client.logs_in()
    assert not client.connection.is_token
    scram = ScramMechanism.SCRAM_SHA_256
    credential = ScramCredential.of(scram, b"salt", scram.salted_password("h", b"salt", 4096), 4096)
    tokens = {"id": TokenCredential("alice", credential, 50)}
    begin = partial(ScramServer, scram, {}.get, "s", tokens.get)
    client = Client(mechanism=SaslMechanism(begin))
    client.says(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    talk = conversation("SCRAM-SHA-256", Credentials("id", "h", is_token=True), "c")
    client.says(SaslAuthenticateRequest(auth_bytes=next(talk)), 2)
    challenge = bytes(client.answer(ApiKey.SASL_AUTHENTICATE, 2).auth_bytes)
    client.says(SaslAuthenticateRequest(auth_bytes=talk.send(challenge)), 2)
    assert client.connection.is_token
    assert client.asks()
    assert client.dispatcher.seen == [(ApiKey.LIST_GROUPS, "User:alice")]
    client.now_ms = 51
    assert not client.asks()
    assert client.transport.closing


def test_the_memory_for_requests_is_for_clients_that_have_logged_in() -> None:
    """Otherwise any client can take it with the sizes of logins that it never finishes."""
    pool = {"queued.max.request.bytes": "1000", "socket.request.max.bytes": "1000"}
    client = Client(properties=pool)
    memory = client.table.memory
    assert memory is not None
    login = encode_request(SaslHandshakeRequest(mechanism="PLAIN"), 1, 5, "c")
    client.sends(login[:-1])
    assert memory.available_bytes == 1000
    memory.give_back(-1000)
    client.sends(login[-1:])
    client.says(SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 2)
    assert client.transport.reading
    client.sends((900).to_bytes(4, "big"))
    assert not client.transport.reading
    memory.give_back(1000)
    assert client.transport.reading
    assert memory.available_bytes == 100
    client.connection.connection_lost(None)
    assert memory.available_bytes == 1000
