"""One link that can be cut: a TCP proxy on the test's own event loop.

It also makes half-open links: `hold_answers` forwards requests and holds the answers.
"""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import Self


class TcpProxy:
    """Forwards connections from `port` to a loopback port."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._server: asyncio.Server | None = None
        self._links: set[asyncio.Task[None]] = set()
        self._answering = asyncio.Event()
        self._answering.set()
        self._is_down = False
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        await self.cut()

    def hold_answers(self) -> None:
        """Hold back every answer from now on."""
        self._answering.clear()

    async def cut(self) -> None:
        """Break every connection; new ones are accepted, and get answers again."""
        links = list(self._links)
        for link in links:
            link.cancel()
        await asyncio.gather(*links, return_exceptions=True)
        self._answering.set()

    async def take_down(self) -> None:
        """Break every connection, and close each new one at once."""
        self._is_down = True
        await self.cut()

    def bring_up(self) -> None:
        """Accept connections again."""
        self._is_down = False

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = asyncio.current_task()
        assert link is not None
        self._links.add(link)
        try:
            if not self._is_down:
                await self._forward(reader, writer)
        except OSError:
            pass  # a broken side ends the link
        except asyncio.CancelledError:
            pass  # cut
        finally:
            self._links.discard(link)
            writer.transport.abort()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        try:
            to_server = asyncio.ensure_future(self._copy(reader, far_writer, held=False))
            to_client = asyncio.ensure_future(self._copy(far_reader, writer, held=True))
            try:
                await asyncio.wait([to_server, to_client], return_when=asyncio.FIRST_COMPLETED)
            finally:
                for copying in (to_server, to_client):
                    copying.cancel()
                await asyncio.gather(to_server, to_client, return_exceptions=True)
        finally:
            far_writer.transport.abort()

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, held: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                if held:
                    await self._answering.wait()
                writer.write(data)
                await writer.drain()
