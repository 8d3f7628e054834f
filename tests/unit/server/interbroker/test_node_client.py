"""The connection to another broker: order, large answers, and every way of not being answered."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.headers import decode_response, encode_request
from kafkapy.protocol.messages import fetch
from kafkapy.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from kafkapy.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from kafkapy.server.interbroker.node_client import NodeClient, NodeUnavailable
from tests.harness.scripted.scripted_node import (
    DISCONNECT,
    LIMIT_MS,
    SILENCE,
    RecordedItems,
    ScriptedNode,
    in_loop,
)


def client_of(node: ScriptedNode, timeout_ms: int = LIMIT_MS) -> NodeClient:
    return NodeClient("127.0.0.1", node.port, "seven", request_timeout_ms=timeout_ms)


def ask(broker_id: int) -> ControlledShutdownRequest:
    return ControlledShutdownRequest(broker_id=broker_id)


def echo(request: Any, version: int) -> ControlledShutdownResponse:
    name = str(request.broker_id)
    return ControlledShutdownResponse(remaining_partitions=[RemainingPartition(topic_name=name)])


def echoed(response: ControlledShutdownResponse) -> int:
    return int(response.remaining_partitions[0].topic_name)


def test_requests_made_at_once_go_out_in_order_over_one_connection() -> None:
    async def scenario() -> None:
        async with ScriptedNode(echo) as node:
            client = client_of(node)
            assert not client.is_connected
            versions = [0, 1, 2, 3] * 5
            asked = (client.request(ask(n), v) for n, v in enumerate(versions))
            assert [echoed(r) for r in await asyncio.gather(*asked)] == list(range(20))
            assert [r.broker_id for r in node.received_requests()] == list(range(20))
            names = {header.client_id for header, _ in node.requests.items if header.api_version}
            assert (names, node.connections, client.is_connected) == ({"seven"}, 1, True)
            client.close()

    in_loop(scenario)


def test_the_receive_buffer_of_a_follower() -> None:
    """`replica.socket.receive.buffer.bytes`."""

    async def scenario() -> None:
        async with ScriptedNode(echo) as node:
            client = NodeClient(
                "127.0.0.1", node.port, "c", request_timeout_ms=LIMIT_MS, receive_buffer_bytes=9000
            )
            await client.request(ask(1), 3)
            assert client._connection is not None
            connected = client._connection._transport.get_extra_info("socket")
            size_bytes = connected.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
            assert size_bytes == 18_000  # Linux doubles it for its own use
            client.close()

    in_loop(scenario)


def test_a_request_that_is_encoded_already() -> None:
    async def scenario() -> None:
        async with ScriptedNode(echo) as node:
            client = client_of(node)
            told: asyncio.Queue[Any] = asyncio.Queue()
            client.call_frame(
                lambda correlation_id: encode_request(ask(7), 2, correlation_id, "seven"),
                lambda frame: decode_response(ControlledShutdownResponse, 2, frame)[1],
                told.put_nowait,
            )
            client.call(ask(8), 2, told.put_nowait)
            assert [echoed(await told.get()) for _ in range(2)] == [7, 8]
            client.close()
            with pytest.raises(NodeUnavailable, match="closed"):
                client.call_frame(lambda _: b"", bytes, told.put_nowait)

    in_loop(scenario)


def test_a_large_answer_comes_whole_and_outlives_the_next() -> None:
    sizes = iter([5_000_000, 1000, 70_000])

    def answer(request: Any, version: int) -> fetch.FetchResponse:
        size = next(sizes)
        row = fetch.PartitionData(records=bytes([size % 251]) * size)
        return fetch.FetchResponse(responses=[fetch.FetchableTopicResponse(partitions=[row])])

    async def scenario() -> None:
        async with ScriptedNode(answer) as node:
            client = client_of(node)
            responses = [await client.request(fetch.FetchRequest(), 12) for _ in range(3)]
            for response, size in zip(responses, [5_000_000, 1000, 70_000], strict=True):
                assert response.responses[0].partitions[0].records == bytes([size % 251]) * size
            client.close()

    in_loop(scenario)


def test_a_disconnect_fails_all_that_wait_and_the_next_request_connects_anew() -> None:
    answers = iter([DISCONNECT])

    async def scenario() -> None:
        async with ScriptedNode(lambda r, v: next(answers, None) or echo(r, v)) as node:
            client = client_of(node)
            lost = await asyncio.gather(
                client.request(ask(1), 2), client.request(ask(2), 2), return_exceptions=True
            )
            assert [type(each) for each in lost] == [NodeUnavailable, NodeUnavailable]
            assert not client.is_connected
            assert echoed(await client.request(ask(3), 2)) == 3
            assert node.connections == 2
            client.close()

    in_loop(scenario)


def test_nobody_listens_then_somebody_does() -> None:
    async def scenario() -> None:
        node = ScriptedNode(echo)
        await node.start()
        await node.stop()
        client = client_of(node)
        with pytest.raises(NodeUnavailable, match=rf"127\.0\.0\.1:{node.port}: .*refused"):
            await client.request(ask(1), 2)
        await node.start()
        assert echoed(await client.request(ask(2), 2)) == 2
        client.close()
        await node.stop()

    in_loop(scenario)


def test_a_host_that_is_none_is_unavailable_too() -> None:
    async def scenario() -> None:
        client = NodeClient("no such host..", 1, "c", request_timeout_ms=LIMIT_MS)
        with pytest.raises(NodeUnavailable):
            await client.request(ask(1), 2)

    in_loop(scenario)


@pytest.mark.parametrize("beside", [0x10000, -0x10000])
def test_a_port_that_is_none_is_not_taken_for_the_port_of_its_lowest_bits(beside: int) -> None:
    """A broker's registration may name any number."""

    async def scenario() -> None:
        async with ScriptedNode(echo) as node:
            port = node.port + beside
            client = NodeClient("127.0.0.1", port, "c", request_timeout_ms=LIMIT_MS)
            with pytest.raises(NodeUnavailable, match=f":{port}: {port} is not a port"):
                await client.request(ask(1), 2)
            assert node.connections == 0

    in_loop(scenario)


def test_an_answer_that_is_late_ends_the_connection() -> None:
    async def scenario() -> None:
        async with ScriptedNode(lambda r, v: SILENCE if r.broker_id == 1 else echo(r, v)) as node:
            client = client_of(node)
            with pytest.raises(NodeUnavailable, match=r"no answer within 0\.001 s"):
                await client.request(ask(1), 2, timeout_ms=1)
            assert echoed(await client.request(ask(2), 2)) == 2
            client.close()

    in_loop(scenario)


def test_each_request_has_its_own_limit() -> None:
    """One timer serves all: a longer limit does not hide a shorter one, nor is cut by it."""

    async def scenario() -> None:
        later = asyncio.Event()

        async def slowly(request: Any) -> Any:
            asyncio.get_running_loop().call_later(0.7, later.set)
            await later.wait()
            return echo(request, 2)

        async with ScriptedNode(lambda r, v: slowly(r) if r.broker_id == 2 else echo(r, v)) as node:
            client = client_of(node)
            assert echoed(await client.request(ask(1), 2, timeout_ms=500)) == 1
            assert echoed(await client.request(ask(2), 2)) == 2
            assert node.connections == 1
            client.close()
        async with ScriptedNode(lambda r, v: SILENCE) as node:
            client = client_of(node)
            patient = RecordedItems()
            client.call(ask(1), 2, patient.add)  # sent before the other, however long that takes
            with pytest.raises(NodeUnavailable, match=r"no answer within 0\.001 s"):
                await client.request(ask(2), 2, timeout_ms=1)
            [outcome] = await patient.at_least(1)
            assert isinstance(outcome, NodeUnavailable)
            assert "no answer within 0.001 s" in str(outcome)
            client.close()

    in_loop(scenario)


def test_a_call_is_told_of_its_answer_once_or_why_there_is_none() -> None:
    answers = iter([DISCONNECT])

    async def scenario() -> None:
        async with ScriptedNode(
            lambda r, v: next(answers, None) if r.broker_id == 3 else echo(r, v)
        ) as node:
            client = client_of(node)
            told: asyncio.Queue[Any] = asyncio.Queue()

            def again(response: Any) -> None:
                told.put_nowait(response)
                client.call(ask(2), 2, told.put_nowait)  # from within the answer

            client.call(ask(1), 2, again)
            assert [echoed(await told.get()) for _ in range(2)] == [1, 2]
            client.call(ask(3), 2, told.put_nowait)
            assert isinstance(await told.get(), NodeUnavailable)
            client.close()
            with pytest.raises(NodeUnavailable):
                client.call(ask(4), 2, told.put_nowait)
            assert told.empty()

    in_loop(scenario)


@pytest.mark.parametrize("body", [b"\0\0\0\x63junk", b"x", b"\0\0\0\0\xff"])
def test_what_is_not_an_answer_ends_the_connection(body: bytes) -> None:
    async def scenario() -> None:
        async with ScriptedNode(lambda r, v: body) as node:
            client = client_of(node)
            with pytest.raises(NodeUnavailable):
                await client.request(ask(1), 2)
            assert not client.is_connected

    in_loop(scenario)


def test_an_answer_that_nobody_waits_for_any_more_is_dropped() -> None:
    async def scenario() -> None:
        release = asyncio.Event()

        async def when_released(request: Any) -> Any:
            await release.wait()
            return echo(request, 2)

        async with ScriptedNode(lambda r, v: when_released(r)) as node:
            client = client_of(node)
            dropped = asyncio.ensure_future(client.request(ask(1), 2))
            await node.requests.at_least(1)
            kept = asyncio.ensure_future(client.request(ask(2), 2))
            dropped.cancel()
            release.set()
            assert echoed(await kept) == 2
            assert (dropped.cancelled(), node.connections) == (True, 1)
            client.close()

    in_loop(scenario)


def test_close_fails_what_waits_and_what_comes() -> None:
    async def scenario() -> None:
        async with ScriptedNode(lambda r, v: SILENCE) as node:
            client = client_of(node)
            waiting = asyncio.ensure_future(client.request(ask(1), 2))
            await node.requests.at_least(1)
            client.close()
            for each in (waiting, client.request(ask(2), 2)):
                with pytest.raises(NodeUnavailable, match="this client was closed"):
                    await each
            unconnected = client_of(node)
            waiting = asyncio.ensure_future(unconnected.request(ask(1), 2))
            await asyncio.sleep(0)
            unconnected.close()
            with pytest.raises(NodeUnavailable):
                await waiting

    in_loop(scenario)


def test_api_versions_are_asked_once_a_connection() -> None:
    ranges = ApiVersionsResponse(api_keys=[ApiVersion(api_key=56, min_version=0, max_version=2)])

    async def scenario() -> None:
        async with ScriptedNode(lambda r, v: ranges) as node:
            client = client_of(node)
            for _ in range(2):
                assert await client.api_versions() == {ApiKey.ALTER_PARTITION: (0, 2)}
            client.disconnect()
            assert await client.api_versions() == {ApiKey.ALTER_PARTITION: (0, 2)}
            assert len(node.requests.items) == 2
            client.close()

    in_loop(scenario)


def test_a_version_that_does_not_exist_is_refused_before_it_is_sent() -> None:
    async def scenario() -> None:
        async with ScriptedNode(echo) as node:
            client = client_of(node)
            with pytest.raises(ApiError) as refused:
                await client.request(ask(1), 9)
            assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
            assert echoed(await client.request(ask(2), 2)) == 2
            client.close()

    in_loop(scenario)
