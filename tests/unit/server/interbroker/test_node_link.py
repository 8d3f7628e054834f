"""Connections to other brokers over TLS; the rest of a link is in test_node_client.py."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kafkapy.protocol.headers import decode_request_header, encode_response
from kafkapy.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from kafkapy.server.interbroker.node_client import NodeClient, NodeUnavailable
from kafkapy.server.security.node_security import NodeSecurity
from tests.harness.scripted.scripted_node import LIMIT_MS, in_loop
from tests.harness.security.certificates import can_make
from tests.harness.security.tls_contexts import TlsContexts


async def answer_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A broker of one request."""
    size = int.from_bytes(await reader.readexactly(4), "big")
    header, _ = decode_request_header(memoryview(await reader.readexactly(size)))
    response = ControlledShutdownResponse()
    writer.writelines(encode_response(response, header.api_key, 3, header.correlation_id))
    writer.close()


async def ask(host: str, port: int, tls: Any) -> Any:
    security = NodeSecurity(None if tls is None else lambda: tls)
    client = NodeClient(host, port, "c", request_timeout_ms=LIMIT_MS, security=security)
    try:
        return await client.request(ControlledShutdownRequest(), 3)
    finally:
        client.close()


def test_a_link_over_tls(tmp_path: Path) -> None:
    if not can_make("links between brokers over TLS"):
        return

    async def scenario() -> None:
        contexts = TlsContexts.make(tmp_path)
        server = await asyncio.start_server(answer_one, "127.0.0.1", 0, ssl=contexts.broker)
        port = server.sockets[0].getsockname()[1]
        response = await ask("localhost", port, contexts.client)
        assert response == ControlledShutdownResponse()
        server.close()
        await server.wait_closed()
        # The broker's certificate is for localhost and 127.0.0.1.
        other = await asyncio.start_server(answer_one, "127.0.0.2", 0, ssl=contexts.broker)
        port = other.sockets[0].getsockname()[1]
        with pytest.raises(NodeUnavailable, match=r"127\.0\.0\.2.* certificate verify failed"):
            await ask("127.0.0.2", port, contexts.client)
        other.close()
        await other.wait_closed()

    in_loop(scenario)
