"""A broker's listener on loopback that answers by a script, for clients in an event loop.

    async with ScriptedNode(answer) as node:      # answer(request, version) -> an answer
        client = NodeClient("127.0.0.1", node.port, "test", request_timeout_ms=LIMIT_MS)

An answer is a message, an awaitable that gives one, bytes for the body, SILENCE or DISCONNECT.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Final, Self

import uvloop

from kafkapy.protocol.compile import decode
from kafkapy.protocol.headers import RequestHeader, decode_request_header, encode_response
from kafkapy.protocol.messages import request_class
from kafkapy.protocol.schema import Message

LIMIT_MS: Final = 30_000
SILENCE: Final = object()
DISCONNECT: Final = object()


def in_loop(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario on the event loop of production; it fails after the limit."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(scenario(), LIMIT_MS / 1000))


class RecordedItems:
    """Items in the order of their arrival, and a wait until there are `count` of them."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._changed = asyncio.Event()

    def add(self, item: Any) -> None:
        self.items.append(item)
        self._changed.set()

    async def at_least(self, count: int) -> list[Any]:
        while len(self.items) < count:
            self._changed.clear()
            await self._changed.wait()
        return self.items


class ScriptedNode:
    """Records its `requests`, as (header, request), and counts its `connections`."""

    def __init__(self, answer: Callable[[Any, int], Any]) -> None:
        self.answer = answer
        self.requests = RecordedItems()
        self.connections = 0
        self.port = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self, port: int = 0) -> None:
        """Listen; on the same port as before after a `stop`."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port or self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening, and reset all connections."""
        assert self._server is not None
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await self._server.wait_closed()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            while await self._answer_one(reader, writer):
                continue
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        size = int.from_bytes(await reader.readexactly(4), "big")
        frame = memoryview(await reader.readexactly(size))
        header, position = decode_request_header(frame)
        cls = request_class(header.api_key)
        request, end = decode(cls, header.api_version, frame, position)
        assert end == size, (header, end, size)
        self.requests.add((header, request))
        answer = self.answer(request, header.api_version)
        if inspect.isawaitable(answer):
            answer = await answer
        if answer is DISCONNECT:
            return False
        if answer is not SILENCE:
            writer.write(_framed(answer, header))
        return True

    def received_requests(self) -> list[Any]:
        """The requests without their headers."""
        return [request for _, request in self.requests.items]


def _framed(answer: Message | bytes, header: RequestHeader) -> bytes:
    if isinstance(answer, bytes):
        return len(answer).to_bytes(4, "big") + answer
    version = header.api_version
    return b"".join(encode_response(answer, header.api_key, version, header.correlation_id))
