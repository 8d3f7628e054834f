"""Turns of the event loop; whole servers are in tests/unit/tools/zookeeper/test_server.py."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop

from kafkapy.common import accept_loop
from kafkapy.common.prefixed_properties import PrefixedProperties
from kafkapy.security.tls.stores import server_context
from kafkapy.zk.service.event_loop import ZooKeeperServer
from kafkapy.zk.service.settings import settings_from
from kafkapy.zk.service.zookeeper_service import FRAMES_A_TURN, UNSENT_MAX_BYTES
from kafkapy.zk.wire.codes import OpCode
from kafkapy.zk.wire.connecting import CONNECT_REQUEST, ConnectRequest
from kafkapy.zk.wire.frames import LENGTH, encode_frame
from kafkapy.zk.wire.jute import encode
from kafkapy.zk.wire.requests import (
    EmptyRequest,
    MultiRequest,
    SetDataRequest,
    WatchedRequest,
    encode_request,
)
from tests.harness.cores.socketless_zookeeper import SocketlessServer
from tests.harness.security.certificates import make_identity

LIMIT_S = 60.0
PING_LIMIT_S = 10.0
HELLO = encode_frame(encode(CONNECT_REQUEST, ConnectRequest(0, 0, 30_000, 0, None, False)))
READ = WatchedRequest("/big", False)


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), ValueError("a defect")])
def test_what_cannot_be_made_durable_ends_the_server_and_is_not_answered(
    fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = SocketlessServer()
    client = desk.client()

    def fail(data: bytes) -> None:
        raise fault

    async def life() -> None:
        loop = asyncio.get_running_loop()
        failed: asyncio.Future[BaseException] = loop.create_future()
        loop.set_exception_handler(lambda *_: None)
        server = ZooKeeperServer(desk.service, 60.0, loop, failed.set_result)
        said = client.raw
        frame = client.frame(OpCode.SET_DATA, SetDataRequest("/", b"x", -1))
        desk.service.handle_data(client.connection, frame)
        monkeypatch.setattr(desk.file, "append", fail)
        server.schedule_turn()
        assert await asyncio.wait_for(failed, LIMIT_S) is fault
        assert server.has_failed
        assert client.raw == said
        server.stop()

    asyncio.run(life())


async def _reply(reader: asyncio.StreamReader) -> bytes:
    (size,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
    return await reader.readexactly(size)


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize(
    ("request_bytes", "replies"),
    [
        (encode_frame(encode_request(1, OpCode.EXISTS, READ)) * FRAMES_A_TURN, FRAMES_A_TURN),
        (
            encode_frame(
                encode_request(1, OpCode.MULTI_READ, MultiRequest(((OpCode.GET_DATA, READ),) * 80))
            ),
            1,
        ),
    ],
    ids=["a whole turn of requests", "one reply beyond the limit of what is unsent"],
)
def test_a_client_that_has_had_its_turn_is_read_from_again(
    request_bytes: bytes, replies: int, new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def life() -> None:
        desk = SocketlessServer()
        desk.client().create("/big", b"x" * (UNSENT_MAX_BYTES // 20))
        loop = asyncio.get_running_loop()
        server = ZooKeeperServer(desk.service, 60.0, loop, lambda fault: None)
        listener = await server.listen("127.0.0.1", 0)
        address = listener.sockets[0].getsockname()
        reader, writer = await asyncio.open_connection(*address)
        writer.write(HELLO)
        await asyncio.wait_for(_reply(reader), LIMIT_S)
        writer.write(request_bytes)
        for _ in range(replies):
            await asyncio.wait_for(_reply(reader), LIMIT_S)
        writer.write(encode_frame(encode_request(-2, OpCode.PING, EmptyRequest())))
        await asyncio.wait_for(_reply(reader), PING_LIMIT_S)
        writer.close()
        listener.close()
        server.stop()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(life())


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_clients_wait_while_their_descriptors_would_leave_none_for_the_journal(
    new_loop: Callable[[], asyncio.AbstractEventLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accept_loop, "RETRY_S", 0.001)
    has_some, refused = [False], asyncio.Event()

    def has_spare_descriptors() -> bool:
        refused.set()
        return has_some[0]

    monkeypatch.setattr(accept_loop, "has_spare_descriptors", has_spare_descriptors)

    async def life() -> None:
        desk = SocketlessServer()
        loop = asyncio.get_running_loop()
        server = ZooKeeperServer(desk.service, 60.0, loop, lambda fault: None)
        listener = await server.listen("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*listener.sockets[0].getsockname())
        writer.write(HELLO)
        reply = loop.create_task(_reply(reader))
        for _ in range(2):
            refused.clear()
            await asyncio.wait(
                {reply, loop.create_task(refused.wait())}, return_when=asyncio.FIRST_COMPLETED
            )
        is_early = reply.done()
        has_some[0] = True
        await asyncio.wait_for(reply, LIMIT_S)
        writer.close()
        listener.close()
        server.stop()
        assert not is_early

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(life())


def test_silent_clients_of_one_address_leave_tls_connections_to_others(tmp_path: Path) -> None:
    identity = make_identity(tmp_path, "server")
    stores = PrefixedProperties({"ssl.keystore.location": str(identity)})

    async def life() -> None:
        desk = SocketlessServer(settings_from({"maxClientCnxns": "2"}))
        server = ZooKeeperServer(desk.service, 60.0, asyncio.get_running_loop(), lambda fault: None)
        listener = await server.listen("127.0.0.1", 0, server_context(stores, "none"))
        address = listener.sockets[0].getsockname()
        silent = [await asyncio.open_connection(*address) for _ in range(2)]
        reader, refused = await asyncio.open_connection(*address)
        assert await asyncio.wait_for(reader.read(), LIMIT_S) == b""
        assert not any(each.at_eof() for each, _ in silent), "it was not its handshake's limit"
        trust = ssl.create_default_context(cafile=str(identity))
        other = await asyncio.open_connection(
            *address, ssl=trust, server_hostname="localhost", local_addr=("127.0.0.2", 0)
        )
        for _, writer in (*silent, other):
            writer.transport.abort()
        refused.close()
        listener.close()
        server.stop()

    asyncio.run(life())
