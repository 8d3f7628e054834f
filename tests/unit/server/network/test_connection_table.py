"""Limits of connections by address; the limits at work are in test_connection."""

from __future__ import annotations

from typing import Any

from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.network.connection_table import ConnectionTable


class FakeConnection:
    """A connection from an address that may be idle since some time."""

    def __init__(
        self, host: str, last_active_ms: int = 0, is_idle: bool = True, listener: str = "L"
    ) -> None:
        self.client_host = host
        self.listener = listener
        self.last_active_ms = last_active_ms
        self.is_idle = is_idle
        self.closed = False

    def idle_ms(self, now_ms: int) -> int:
        return now_ms - self.last_active_ms if self.is_idle else 0

    def close(self) -> None:
        self.closed = True

    close_idle_peer = abort = close


def table(**properties: str) -> Any:
    given = {name.replace("_", "."): value for name, value in properties.items()}
    return ConnectionTable(KafkaConfig(given))


def opened(table: Any, connection: FakeConnection) -> FakeConnection:
    """A connection that was admitted, and begins."""
    assert table.admit(connection.listener, connection.client_host) is None
    table.opened(connection)
    table.limits.leave(connection.listener, connection.client_host)
    return connection


def test_a_refusal_says_who_and_which_limit() -> None:
    by_address = table(max_connections_per_ip="1")
    one = opened(by_address, FakeConnection("a"))
    assert by_address.admit("L", "a") == "a already has max.connections.per.ip=1 connections"
    assert by_address.admit("L", "b") is None
    by_address.remove(one)
    by_address.remove(one)
    assert by_address.admit("L", "a") is None
    assert by_address.accepted == 3


BROKERS = {
    "listeners": "L://127.0.0.1:1,B://127.0.0.1:2",
    "listener_security_protocol_map": "L:PLAINTEXT,B:PLAINTEXT",
    "inter_broker_listener_name": "B",
}


def test_a_broker_takes_the_place_of_the_client_that_was_quiet_for_longest() -> None:
    full = table(max_connections="3", **BROKERS)
    quiet, busy = FakeConnection("a", 10), FakeConnection("b", 20)
    broker = FakeConnection("c", 0, listener="B")
    for each in (busy, quiet, broker):
        opened(full, each)
    assert not quiet.closed
    opened(full, FakeConnection("d", listener="B"))
    assert [each.closed for each in (quiet, busy, broker)] == [True, False, False]
    assert (len(full), full.limits.total) == (3, 3)


def test_fewer_connections_are_allowed_than_there_are() -> None:
    full = table(**BROKERS)
    full.limits.on_change = full.close_excess
    clients = [opened(full, FakeConnection("a", at)) for at in (30, 10, 20)]
    full.limits.update({"max.connections": "1"})
    assert [each.closed for each in clients] == [False, True, True]


def test_connections_are_counted_by_listener() -> None:
    open_ones = table()
    one, two, other = (FakeConnection("a", listener=name) for name in ("X", "X", "Y"))
    for connection in (one, two, other):
        opened(open_ones, connection)
    assert open_ones.count_by_listener() == {"X": 2, "Y": 1}
    open_ones.remove(one)
    open_ones.remove(other)
    assert open_ones.count_by_listener() == {"X": 1}


def test_addresses_that_left_are_forgotten() -> None:
    many = table()
    for i in range(100):
        connection = FakeConnection(str(i))
        opened(many, connection)
        many.remove(connection)
    assert not many.limits._per_host


def test_only_who_is_idle_for_longer_than_the_limit_is_closed() -> None:
    limited = table(connections_max_idle_ms="100")
    idle, fresh, busy = (
        FakeConnection("a", 99),
        FakeConnection("a", 100),
        FakeConnection("a", 0, is_idle=False),
    )
    for connection in (idle, fresh, busy):
        opened(limited, connection)
    limited.close_idle(200)
    assert [c.closed for c in (idle, fresh, busy)] == [True, False, False]


def test_idle_connections_may_stay_for_ever() -> None:
    patient = table(connections_max_idle_ms="-1")
    idle = FakeConnection("a")
    opened(patient, idle)
    patient.close_idle(10**15)
    assert not idle.closed
    patient.close_all()
    assert idle.closed


def test_the_connections_of_one_listener_are_closed() -> None:
    of_two = table()
    stays, goes = FakeConnection("a"), FakeConnection("a", listener="M")
    for each in (stays, goes):
        opened(of_two, each)
    of_two.close_listener("M")
    assert (stays.closed, goes.closed) == (False, True)
