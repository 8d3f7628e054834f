"""http_server: connections and requests that clients leave, and what HTTP itself asks for."""

from __future__ import annotations

import asyncio
import base64
import logging
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import orjson
import pytest
from aiohttp import web

from kafkapy.schemas import http_server
from kafkapy.schemas.http_server import HttpServer
from kafkapy.schemas.records import Record, SchemaType, StoredSchema, Version, schema_record
from kafkapy.schemas.registry_service import RegistryService
from kafkapy.schemas.rest_api import Call
from kafkapy.schemas.rest_errors import RestError
from kafkapy.schemas.users import User, Users
from tests.harness.processes.waiting import LIMIT_S
from tests.unit.schemas.test_registry_service import Topic

HOST = "Host: a\r\n"
TYPES = f"GET /schemas/types HTTP/1.1\r\n{HOST}"
REGISTER = f"POST /subjects/a/versions HTTP/1.1\r\n{HOST}"
PART = f"{REGISTER}Content-Length: 100\r\n"


class Server:
    """A server that runs, and its connections."""

    def __init__(self, port: int, stopping: asyncio.Event) -> None:
        self.port = port
        self.stopping = stopping

    async def open(self, request: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(request.encode())
        return reader, writer

    async def whole(self, request: str) -> str:
        """The response, until the server closes the connection."""
        reader, writer = await self.open(request)
        try:
            return (await reader.read()).decode()
        finally:
            writer.close()

    async def answer(self, request: str) -> tuple[int, Any]:
        text = await self.whole(f"{request}Connection: close\r\n\r\n")
        return int(text.split()[1]), orjson.loads(text.partition("\r\n\r\n")[2])


def serve(
    scenario: Callable[[Server], Awaitable[None]], service: Any = None, users: Users | None = None
) -> None:
    async def run() -> None:
        stopping, url = asyncio.Event(), asyncio.get_running_loop().create_future()
        server = HttpServer(service or RegistryService(cast(Any, Topic()), ""), users)
        serving = asyncio.create_task(server.run("127.0.0.1", 0, None, url.set_result, stopping))
        try:
            await scenario(Server(int((await url).rpartition(":")[2]), stopping))
        finally:
            stopping.set()
            await serving

    asyncio.run(run())


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_IDLE_S", "_LINGER_S"):
        monkeypatch.setattr(http_server, name, 0.05)


@pytest.fixture
def silent(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing is logged."""
    yield
    assert not [each for each in caplog.get_records("call") if each.levelno > logging.DEBUG]


@pytest.mark.parametrize(
    ("data", "status"),
    [("", ""), ("GET /x HT", ""), (f"{PART}\r\nabc", "408"), (f"{TYPES}\r\n", "200")],
)
def test_a_connection_that_sends_nothing_more_is_closed(
    brief: None, silent: None, data: str, status: str
) -> None:
    """They stayed open until the server had no descriptors left."""

    async def scenario(server: Server) -> None:
        text = await server.whole(data)
        assert text.startswith(f"HTTP/1.1 {status}" if status else "")
        assert bool(text) is bool(status)

    serve(scenario)


def test_a_server_stops_without_the_rest_of_a_body(
    monkeypatch: pytest.MonkeyPatch, silent: None
) -> None:
    monkeypatch.setattr(http_server, "_STOP_S", 0.05)
    monkeypatch.setattr(http_server, "_IDLE_S", 1e6)

    async def scenario(server: Server) -> None:
        reader, writer = await server.open(f"{PART}Expect: 100-continue\r\n\r\n")
        assert b"100" in await reader.readline()
        server.stopping.set()
        await reader.read()
        writer.close()

    serve(scenario)


def test_clients_that_have_left_get_no_answer(silent: None) -> None:
    """While Kafka hangs, their requests delayed those of all others."""
    running, released = threading.Event(), threading.Event()
    subjects = []

    def answer(_handler: Any, call: Call, _asked_s: float) -> list[str]:
        subjects.append(call.subject)
        running.set()
        released.wait()
        return []

    service = Mock(answer=answer, answer_known=Mock(return_value=None))

    def get(subject: str) -> str:
        return f"GET /subjects/{subject}/versions HTTP/1.1\r\n{HOST}"

    async def scenario(server: Server) -> None:
        first = asyncio.create_task(server.answer(get("first")))
        await asyncio.to_thread(running.wait)
        for _ in range(3):
            _reader, writer = await server.open(get("left") + "\r\n")
            writer.close()
            await writer.wait_closed()
        last = asyncio.create_task(server.answer(get("last")))
        # Answered by the loop, which has then seen that the others have left.
        assert "200" in await server.whole(f"OPTIONS / HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n")
        released.set()
        assert [await first, await last] == [(200, []), (200, [])]

    try:
        serve(scenario, service)
    finally:
        released.set()
    assert subjects == ["first", "last"]


def test_a_server_stops_without_the_requests_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_STOP_S", 0.05)
    running, released = threading.Event(), threading.Event()
    answers = Mock(side_effect=lambda *_: running.set() or released.wait())

    async def scenario(server: Server) -> None:
        requests = [await server.open(f"GET /subjects HTTP/1.1\r\n{HOST}\r\n") for _ in range(5)]
        await asyncio.to_thread(running.wait)
        server.stopping.set()
        for reader, writer in requests:
            await reader.read()
            writer.close()
        released.set()

    serve(scenario, Mock(answer=answers, answer_known=Mock(return_value=None)))
    assert answers.call_count == 1


def test_a_schema_is_formatted_beside_the_loop() -> None:
    """protoc stopped all requests, also those for known ids."""
    threads = []

    def answer_known(_handler: Any, call: Call) -> object:
        threads.append((threading.current_thread() is threading.main_thread(), [*call.query]))
        return {}

    async def scenario(server: Server) -> None:
        for query in ("?format=serialized", ""):
            path = f"GET /schemas/ids/1{query} HTTP/1.1\r\n{HOST}"
            assert await server.answer(path) == (200, {})

    serve(scenario, Mock(answer_known=answer_known))
    assert threads == [(False, ["format"]), (True, [])]


class FollowedTopic(Topic):
    """A topic in memory that counts how often it was read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = threading.Semaphore(0)

    def read_stable(self) -> list[Record]:
        self.reads.release()
        return super().read_stable()


def test_known_ids_follow_the_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another registry removed a schema, and imported another one with its id. Look-ups by id do
    not read the topic."""
    monkeypatch.setattr(http_server, "_FOLLOW_S", 0)
    topic = FollowedTopic()
    service = RegistryService(cast(Any, topic), "")

    async def scenario(server: Server) -> None:
        for text in ('"int"', '"string"'):
            schema = StoredSchema(SchemaType.AVRO, text)
            topic.records.append(schema_record(Version("a", 1, 1, schema)))
            while topic.reads.acquire(blocking=False):
                pass
            for _ in range(2):  # the second read follows the first one's records
                assert await asyncio.to_thread(topic.reads.acquire, timeout=LIMIT_S)
            path = f"GET /schemas/ids/1/schema HTTP/1.1\r\n{HOST}"
            assert await server.answer(path) == (200, orjson.loads(text))

    serve(scenario, service)


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br"])
def test_compressed_bodies_are_refused(silent: None, encoding: str) -> None:
    """Some bytes may become a thousand times as many. Confluent's clients compress nothing."""

    async def scenario(server: Server) -> None:
        body = (
            f"Content-Encoding: {encoding}\r\nContent-Length: 5\r\nConnection: close\r\n\r\nabcde"
        )
        text = await server.whole(REGISTER + body)
        assert text.startswith("HTTP/1.1 415 ")
        assert "Accept-Encoding: identity\r\n" in text
        assert '"error_code":415' in text

    serve(scenario)


@pytest.mark.parametrize(
    "request_text",
    [
        f"{REGISTER}Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
        f"GET /{'a' * 20_000} HTTP/1.1\r\n{HOST}\r\n",
        f"{TYPES}X: {'a' * 20_000}\r\n\r\n",
        f"{TYPES}Content-Length: -5\r\n\r\n",
        "\x16\x03\x01\r\n\r\n",
    ],
)
def test_what_is_not_http_is_refused_without_a_traceback(silent: None, request_text: str) -> None:
    async def scenario(server: Server) -> None:
        assert (await server.whole(request_text)).split()[1] == "400"

    serve(scenario)


def test_an_upload_that_is_aborted_leaves_no_traceback(silent: None) -> None:
    async def scenario(server: Server) -> None:
        for end in ("abort", "close"):
            reader, writer = await server.open(f"{PART}Expect: 100-continue\r\n\r\nabc")
            assert b"100" in await reader.readline()
            getattr(writer.transport, end)()
        assert await server.answer(TYPES) == (200, ["JSON", "PROTOBUF", "AVRO"])

    serve(scenario)


@pytest.mark.parametrize("error", [web.RequestPayloadError("broken"), ConnectionResetError()])
def test_a_body_that_breaks_off_is_refused(error: Exception) -> None:
    """aiohttp's parser in Python reports malformed chunks so."""
    request: Any = Mock(headers={}, read=AsyncMock(side_effect=error))
    with pytest.raises(RestError, match="The body cannot be read") as raised:
        asyncio.run(http_server._body(request))
    assert raised.value.code == 400


def test_head_and_options() -> None:
    async def scenario(server: Server) -> None:
        text = await server.whole(
            f"HEAD /schemas/types HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n"
        )
        assert text.startswith("HTTP/1.1 200 ")
        assert "Content-Length: 26\r\n" in text
        assert text.endswith("\r\n\r\n")
        path = f"/config HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n"
        text = await server.whole(f"OPTIONS {path}")
        assert text.startswith("HTTP/1.1 200 ")
        assert "Allow: GET,HEAD,PUT,DELETE,OPTIONS\r\n" in text
        text = await server.whole(f"PATCH {path}")
        assert text.startswith("HTTP/1.1 405 ")
        assert "Allow: DELETE,GET,HEAD,OPTIONS,PUT\r\n" in text

    serve(scenario)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8081", 200),
        ("127.0.0.1:8081", 200),
        ("[::1]:8081", 200),
        ("REGISTRY.localhost", 200),
        ("host.docker.internal.", 200),
        ("registry", 200),
        ("evil.example:8081", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost@evil.example", 403),
    ],
)
def test_public_host_names_are_refused_on_loopback(host: str, status: int) -> None:
    """DNS rebinding: the browser regards a page of such a site as one of the registry's."""

    async def scenario(server: Server) -> None:
        request = f"GET /schemas/types HTTP/1.1\r\nHost: {host}\r\n"
        assert (await server.answer(request))[0] == status

    serve(scenario)


def test_with_a_login_any_host_name_is_accepted() -> None:
    """A proxy may keep the Host header. Browsers do not send a login to another site."""

    async def scenario(server: Server) -> None:
        login = "Authorization: Basic " + base64.b64encode(b"ann:secret").decode()
        request = f"GET /schemas/types HTTP/1.1\r\nHost: a.example\r\n{login}\r\n"
        assert (await server.answer(request))[0] == 200

    serve(scenario, users=Users({User("ann", may_write=True): "secret"}))


def test_options_need_a_login() -> None:
    async def scenario(server: Server) -> None:
        assert (await server.answer(f"OPTIONS / HTTP/1.1\r\n{HOST}"))[0] == 401

    serve(scenario, users=Users({User("ann", may_write=True): "secret"}))
