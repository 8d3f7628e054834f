"""Limits on connections; test_listener_acceptor tests that connections wait or are closed."""

from __future__ import annotations

import asyncio

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.network import connection_limits
from kafkapy.server.network.connection_limits import (
    BROKERS_RESERVE,
    ConnectionLimits,
    sockets_at_most,
)

TWO = {
    "listeners": "A://127.0.0.1:1,B://127.0.0.1:2",
    "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
    "inter.broker.listener.name": "B",
}


def test_the_listener_of_brokers_is_protected_if_there_are_others() -> None:
    limits = ConnectionLimits(KafkaConfig({**TWO, "max.connections": "1"}))
    limits.count("A", "a")
    assert (limits.has_capacity("A"), limits.has_capacity("B")) == (False, True)
    limits.count("B", "b")
    assert limits.excess == 1
    alone = ConnectionLimits(KafkaConfig({"max.connections": "1"}))
    alone.count("PLAINTEXT", "a")
    assert not alone.has_capacity("PLAINTEXT")


def test_a_listener_has_its_own_limit_the_one_of_brokers_too() -> None:
    given = {f"listener.name.{name}.max.connections": "1" for name in "ab"}
    limits = ConnectionLimits(KafkaConfig({**TWO, **given}))
    for name in "AB":
        assert limits.has_capacity(name)
        limits.count(name, "a")
        assert not limits.has_capacity(name)


def test_limits_change_while_the_broker_runs() -> None:
    limits = ConnectionLimits(KafkaConfig(TWO))
    limits.count("A", "a")
    limits.update({"max.connections": "1", "max.connections.per.ip.overrides": "a:1"})
    assert not limits.has_capacity("A")
    assert limits.enter("A", "a") is not None
    with pytest.raises(ConfigError):
        limits.update({"max.connections.per.ip.overrides": "nonsense"})
    assert not limits.has_capacity("A")
    limits.update({})
    assert limits.has_capacity("A")
    assert limits.enter("A", "a") is None


def test_who_waits_for_room_goes_on_when_a_limit_rises() -> None:
    async def scenario() -> None:
        limits = ConnectionLimits(KafkaConfig({"max.connections": "0"}))
        waiting = asyncio.create_task(limits.wait_for_capacity("PLAINTEXT"))
        await asyncio.wait([waiting], timeout=0.01)
        assert not waiting.done()
        limits.update({"max.connections": "1"})
        await waiting

    asyncio.run(scenario())


def test_connections_leave_descriptors_for_logs_and_brokers() -> None:
    assert sockets_at_most(1024) == 1024 - 512 - 64
    assert sockets_at_most(-1) > 10**9
    limits = ConnectionLimits(KafkaConfig(TWO), 1024)
    for _ in range(sockets_at_most(1024)):
        limits.count("A", "a")
    assert (limits.has_capacity("A"), limits.has_capacity("B")) == (False, True)
    for _ in range(BROKERS_RESERVE):
        limits.count("B", "b")
    assert not limits.has_capacity("B")


def test_an_override_may_name_a_host(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def resolve(name: str) -> str | None:
        return {"alice": "10.0.0.1", "bob": "10.0.0.2"}.get(name)

    monkeypatch.setattr(connection_limits, "resolve", resolve)
    limits = ConnectionLimits(KafkaConfig(TWO))
    limits.spawn = asyncio.run
    text = "alice:1,nobody:1,bob:1,10.0.0.2:2"
    limits.update({"max.connections.per.ip": "0", "max.connections.per.ip.overrides": text})
    entered = [limits.enter("A", f"10.0.0.{n}") is None for n in (1, 1, 2, 2, 2, 3)]
    assert entered == [True, False, True, True, False, False]
    [record] = caplog.records
    assert "the address of nobody cannot be found" in record.getMessage()
