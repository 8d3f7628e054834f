"""A link that logs in first, and again in time; requests wait meanwhile and keep their order."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from kafkapy.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkapy.security.sasl.client import Conversation, conversation
from kafkapy.security.sasl.jaas import Credentials
from kafkapy.server.interbroker import sasl_link
from kafkapy.server.interbroker.node_client import NodeClient, NodeUnavailable
from kafkapy.server.interbroker.sasl_link import SaslNodeConnection
from kafkapy.server.security.node_security import NodeSecurity
from tests.harness.scripted.scripted_node import DISCONNECT, LIMIT_MS, ScriptedNode, in_loop

SECURITY = NodeSecurity(
    None, "PLAIN", lambda host: conversation("PLAIN", Credentials("b", "s"), "nonce")
)


def client_of(node: ScriptedNode, security: NodeSecurity = SECURITY) -> NodeClient:
    return NodeClient("127.0.0.1", node.port, "c", request_timeout_ms=LIMIT_MS, security=security)


def ask(number: int) -> ControlledShutdownRequest:
    return ControlledShutdownRequest(broker_id=number)


def echoed(response: ControlledShutdownResponse) -> int:
    return int(response.remaining_partitions[0].topic_name)


def broker(lifetime_ms: int = 0, **refusals: Any) -> Callable[[Any, int], Any]:
    """Answers everything, but for what `refusals` say."""

    def answer(request: Any, version: int) -> Any:
        if isinstance(request, SaslHandshakeRequest):
            return refusals.get("handshake", SaslHandshakeResponse(mechanisms=["PLAIN"]))
        if isinstance(request, SaslAuthenticateRequest):
            done = SaslAuthenticateResponse(session_lifetime_ms=lifetime_ms)
            return refusals.get("authenticate", done)
        row = RemainingPartition(topic_name=str(request.broker_id))
        return ControlledShutdownResponse(remaining_partitions=[row])

    return answer


def kinds(node: ScriptedNode) -> list[Any]:
    return [
        getattr(request, "broker_id", type(request).__name__)
        for request in node.received_requests()
    ]


LOGIN = ["SaslHandshakeRequest", "SaslAuthenticateRequest"]


def test_the_login_comes_first() -> None:
    async def scenario() -> None:
        async with ScriptedNode(broker()) as node:
            client = client_of(node)
            answers = await asyncio.gather(*(client.request(ask(n), 3) for n in range(5)))
            assert [echoed(answer) for answer in answers] == list(range(5))
            assert kinds(node) == [*LOGIN, *range(5)]
            assert node.received_requests()[1].auth_bytes == b"\0b\0s"
            assert client.is_connected
            client.close()

    in_loop(scenario)


@pytest.mark.parametrize(
    ("refusals", "said"),
    [
        (
            {
                "handshake": SaslHandshakeResponse(
                    error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=["GSSAPI"]
                )
            },
            "it does not offer SASL mechanism PLAIN; it offers: GSSAPI",
        ),
        (
            {
                "authenticate": SaslAuthenticateResponse(
                    error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="not you"
                )
            },
            "not you",
        ),
        ({"authenticate": DISCONNECT}, "the connection was closed"),
        ({"handshake": b"nonsense"}, "correlation id"),
    ],
)
def test_a_login_that_fails_fails_all_that_wait(refusals: dict[str, Any], said: str) -> None:
    async def scenario() -> None:
        async with ScriptedNode(broker(**refusals)) as node:
            client = client_of(node)
            both = [client.request(ask(n), 3) for n in range(2)]
            failures = await asyncio.gather(*both, return_exceptions=True)
            assert all(isinstance(failure, NodeUnavailable) for failure in failures)
            assert all(said in str(failure) for failure in failures)
            assert not client.is_connected
            assert 0 not in kinds(node)

    in_loop(scenario)


@pytest.fixture
def renewed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the next request, which is otherwise at 85 % of the life of a session."""
    monkeypatch.setattr(sasl_link, "_RENEW_AT", 0.0)


def test_when_a_session_is_to_be_renewed() -> None:
    async def scenario() -> None:
        async with ScriptedNode(broker(lifetime_ms=20_000)) as node:
            client, loop = client_of(node), asyncio.get_running_loop()
            earliest_s = loop.time() + 17
            await client.request(ask(0), 3)
            assert isinstance(client._connection, SaslNodeConnection)
            assert client._connection._renew_at_s is not None
            assert earliest_s <= client._connection._renew_at_s <= loop.time() + 17
            client.close()

    in_loop(scenario)


@pytest.mark.usefixtures("renewed_at_once")
def test_a_session_is_renewed_before_it_ends() -> None:
    async def scenario() -> None:
        async with ScriptedNode(broker(lifetime_ms=20_000)) as node:
            client = client_of(node)
            assert echoed(await client.request(ask(0), 3)) == 0
            answers = await asyncio.gather(*(client.request(ask(n), 3) for n in (1, 2)))
            assert [echoed(answer) for answer in answers] == [1, 2]
            assert kinds(node) == [*LOGIN, 0, *LOGIN, 1, 2]
            assert node.connections == 1
            client.close()

    in_loop(scenario)


@pytest.mark.usefixtures("renewed_at_once")
def test_a_renewal_waits_for_the_answers_that_are_due() -> None:
    gate: asyncio.Event

    async def scenario() -> None:
        nonlocal gate
        gate = asyncio.Event()
        plain = broker(lifetime_ms=20_000)

        async def slow(request: Any, version: int) -> Any:
            if getattr(request, "broker_id", None) == 0:
                await gate.wait()
            return plain(request, version)

        async with ScriptedNode(slow) as node:
            client = client_of(node)
            first = asyncio.ensure_future(client.request(ask(0), 3))
            await node.requests.at_least(3)
            second = asyncio.ensure_future(client.request(ask(1), 3))
            await asyncio.sleep(0)
            gate.set()
            assert (echoed(await first), echoed(await second)) == (0, 1)
            assert kinds(node) == [*LOGIN, 0, *LOGIN, 1]
            client.close()

    in_loop(scenario)


class Tickets:
    """A login whose first message waits for somebody else: `may_go` lets it go on."""

    def __init__(self, failure: str = "") -> None:
        self.may_go = threading.Event()
        self.hosts: list[str] = []
        self._failure = failure
        self.security = NodeSecurity(None, "PLAIN", self._begin, ThreadPoolExecutor(1))

    def _begin(self, host: str) -> Conversation:
        self.hosts.append(host)
        self.may_go.wait(LIMIT_MS / 1000)
        if self._failure:
            raise ApiError(ErrorCode.SASL_AUTHENTICATION_FAILED, self._failure)
        yield b"ticket"


def test_a_first_message_that_blocks_is_made_in_a_thread() -> None:
    async def scenario() -> None:
        tickets = Tickets()
        async with ScriptedNode(broker()) as node:
            client = client_of(node, tickets.security)
            waiting = asyncio.ensure_future(client.request(ask(0), 3))
            await node.requests.at_least(1)  # the loop goes on meanwhile
            tickets.may_go.set()
            assert echoed(await waiting) == 0
            assert kinds(node) == [*LOGIN, 0]
            assert node.received_requests()[1].auth_bytes == b"ticket"
            assert tickets.hosts == ["127.0.0.1"]
            client.close()

    in_loop(scenario)


def test_no_ticket_fails_all_that_wait() -> None:
    async def scenario() -> None:
        tickets = Tickets("No Kerberos ticket for kafka/b2")
        tickets.may_go.set()
        async with ScriptedNode(broker()) as node:
            with pytest.raises(NodeUnavailable, match="No Kerberos ticket for kafka/b2"):
                await client_of(node, tickets.security).request(ask(0), 3)
            assert kinds(node) == LOGIN[:1]

    in_loop(scenario)


def test_a_ticket_that_comes_too_late_is_not_sent() -> None:
    async def scenario() -> None:
        tickets = Tickets()
        async with ScriptedNode(broker()) as node:
            client = client_of(node, tickets.security)
            waiting = asyncio.ensure_future(client.request(ask(0), 3))
            await node.requests.at_least(1)
            while not tickets.hosts:
                await asyncio.sleep(0)
            behind = client_of(node, tickets.security)
            also_waiting = asyncio.ensure_future(behind.request(ask(0), 3))
            await node.requests.at_least(2)
            for each, answer in ((client, waiting), (behind, also_waiting)):
                each.close()
                with pytest.raises(NodeUnavailable, match="closed"):
                    await answer
            tickets.may_go.set()
            assert tickets.security.thread is not None
            tickets.security.thread.shutdown()
            assert len(tickets.hosts) == 1  # nobody waits for the other any more
            await asyncio.sleep(0)
            assert kinds(node) == LOGIN[:1] * 2

    in_loop(scenario)


def test_a_connection_that_ends_as_its_ticket_comes() -> None:
    async def scenario() -> None:
        faults: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault))
        tickets = Tickets()
        async with ScriptedNode(broker()) as node:
            client = client_of(node, tickets.security)
            waiting = asyncio.ensure_future(client.request(ask(0), 3))
            await node.requests.at_least(1)
            while not tickets.hosts:
                await asyncio.sleep(0)
            tickets.may_go.set()
            assert tickets.security.thread is not None
            tickets.security.thread.shutdown()
            await asyncio.sleep(0)  # the ticket is there, and not looked at yet
            client.close()
            with pytest.raises(NodeUnavailable, match="closed"):
                await waiting
            await asyncio.sleep(0)
            assert not faults
            assert kinds(node) == LOGIN[:1]

    in_loop(scenario)


def test_closing_during_the_login() -> None:
    async def scenario() -> None:
        never = asyncio.Event()

        async def silent(request: Any, version: int) -> Any:
            await never.wait()

        async with ScriptedNode(silent) as node:
            client = client_of(node)
            waiting = asyncio.ensure_future(client.request(ask(0), 3))
            await node.requests.at_least(1)
            client.close()
            with pytest.raises(NodeUnavailable, match="closed"):
                await waiting
            never.set()

    in_loop(scenario)
