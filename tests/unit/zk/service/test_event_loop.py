"""Turns of the event loop; whole servers are in tests/unit/tools/zookeeper/test_server.py."""

from __future__ import annotations

import asyncio

import pytest

from kafkapy.zk.service.event_loop import ZooKeeperServer
from kafkapy.zk.wire.codes import OpCode
from kafkapy.zk.wire.requests import SetDataRequest
from tests.harness.cores.socketless_zookeeper import ZooKeeperDesk

LIMIT_S = 60.0


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), ValueError("a defect")])
def test_what_cannot_be_made_durable_ends_the_server_and_is_not_answered(
    fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = ZooKeeperDesk()
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
        desk.service.received(client.connection, frame)
        monkeypatch.setattr(desk.file, "append", fail)
        server.call_turn()
        assert await asyncio.wait_for(failed, LIMIT_S) is fault
        assert server.has_failed
        assert client.raw == said
        server.stop()

    asyncio.run(life())
