"""Limits of connections by address; the limits at work are in test_connection."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.server.client_quotas import ConnectionRates
from kafkapy.server.connection_table import ConnectionTable, parse_overrides
from kafkapy.server.kafka_config import KafkaConfig
from kafkapy.server.quota_usage import Windows


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

    def quiet_ms(self, now_ms: int) -> int:
        return now_ms - self.last_active_ms if self.is_idle else 0

    def close(self) -> None:
        self.closed = True

    close_quiet = close


def table(**properties: str) -> Any:
    given = {name.replace("_", "."): value for name, value in properties.items()}
    return ConnectionTable(KafkaConfig(given))


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("", {}),
        ("10.0.0.1:5", {"10.0.0.1": 5}),
        (" 10.0.0.1:5 , ::1:0,", {"10.0.0.1": 5, "0:0:0:0:0:0:0:1": 0}),
    ],
)
def test_overrides(text: str, limits: dict[str, int]) -> None:
    assert parse_overrides(text) == limits


@pytest.mark.parametrize("text", ["10.0.0.1", "10.0.0.1:many", "10.0.0.1:-1", "10.0.0.1:²", "5"])
def test_overrides_that_cannot_be_read_are_named(text: str) -> None:
    with pytest.raises(ConfigError, match=r"max\.connections\.per\.ip\.overrides=.* host:limit"):
        parse_overrides(f"10.0.0.2:1,{text}")


def test_a_refusal_says_who_and_which_limit() -> None:
    by_address = table(max_connections_per_ip="1")
    assert by_address.admit(FakeConnection("a")) is None
    assert by_address.admit(FakeConnection("a")) == (
        "a already has max.connections.per.ip=1 connections"
    )
    assert by_address.admit(FakeConnection("b")) is None
    in_all = table(max_connections="1")
    in_all.admit(FakeConnection("a"))
    said = in_all.admit(FakeConnection("b"))
    assert said == "the broker already has max.connections=1 connections"
    assert (by_address.rejected, in_all.rejected) == (1, 1)


def test_a_closed_connection_makes_room_once() -> None:
    limited = table(max_connections_per_ip="2")
    one, two, refused = (FakeConnection("a") for _ in range(3))
    limited.admit(one)
    limited.admit(two)
    assert limited.admit(refused)
    limited.forget(refused)
    limited.forget(one)
    limited.forget(one)
    assert (len(limited), limited.accepted, limited.rejected) == (1, 2, 1)
    assert limited.admit(FakeConnection("a")) is None
    assert limited.admit(FakeConnection("a"))


def test_connections_are_counted_by_listener() -> None:
    open_ones = table()
    one, two, other = (FakeConnection("a", listener=name) for name in ("X", "X", "Y"))
    for connection in (one, two, other):
        open_ones.admit(connection)
    assert open_ones.count_by_listener() == {"X": 2, "Y": 1}
    open_ones.forget(one)
    open_ones.forget(other)
    assert open_ones.count_by_listener() == {"X": 1}


def test_addresses_that_left_are_forgotten() -> None:
    many = table()
    for i in range(100):
        connection = FakeConnection(str(i))
        many.admit(connection)
        many.forget(connection)
    assert not many._per_host


def test_only_who_is_idle_for_longer_than_the_limit_is_closed() -> None:
    limited = table(connections_max_idle_ms="100")
    idle, fresh, busy = (
        FakeConnection("a", 99),
        FakeConnection("a", 100),
        FakeConnection("a", 0, is_idle=False),
    )
    for connection in (idle, fresh, busy):
        limited.admit(connection)
    limited.close_idle(200)
    assert [c.closed for c in (idle, fresh, busy)] == [True, False, False]
    assert limited.idle_closed == 1


def test_idle_connections_may_stay_for_ever() -> None:
    patient = table(connections_max_idle_ms="-1")
    idle = FakeConnection("a")
    patient.admit(idle)
    patient.close_idle(10**15)
    assert not idle.closed
    patient.close_all()
    assert idle.closed


def test_those_that_wait_to_be_turned_away_are_no_open_ones() -> None:
    rates = ConnectionRates(Windows(KafkaConfig({})))
    rates.set(None, {"connection_creation_rate": "0"})
    limited: Any = ConnectionTable(KafkaConfig({"max.connections.per.ip": "1"}), rates)
    gone, waiting = FakeConnection("a"), FakeConnection("a")
    assert [limited.delay_ms(each) for each in (gone, waiting)] == [1000, 1000]
    assert (len(limited), limited.rejected) == (0, 2)
    limited.forget(gone)
    limited.close_all()
    assert (gone.closed, waiting.closed) == (False, True)
    rates.set(None, {})
    assert limited.delay_ms(FakeConnection("a")) == 0
    assert limited.admit(FakeConnection("a")) is None


def test_the_connections_of_one_listener_are_closed() -> None:
    of_two = table()
    stays, goes = FakeConnection("a"), FakeConnection("a", listener="M")
    for each in (stays, goes):
        of_two.admit(each)
    of_two.close_listener("M")
    assert (stays.closed, goes.closed) == (False, True)
