"""Listeners are read as Kafka reads them; a mistake is named with the key it is in."""

from __future__ import annotations

import pytest

from kafkapy.common.cluster_state import Endpoint
from kafkapy.common.errors import ConfigError
from kafkapy.server.config.listeners import Listener, parse_advertised_listeners, parse_listeners

MAP = ["PLAINTEXT:PLAINTEXT", "INSIDE:plaintext", "SSL:SSL"]


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("PLAINTEXT://:9092", "", 9092),
        ("plaintext://localhost:0", "localhost", 0),
        ("PLAINTEXT://[::1]:9092", "::1", 9092),
        ("PLAINTEXT://[fe80::1%eth0]:9092", "fe80::1%eth0", 9092),
        ("PLAINTEXT://[fe80::1%3]:9092", "fe80::1%3", 9092),
        ("PLAINTEXT://0.0.0.0:65535", "0.0.0.0", 65535),
        ("PLAINTEXT://my-host.example:1", "my-host.example", 1),
    ],
)
def test_one_listener(text: str, host: str, port: int) -> None:
    [listener] = parse_listeners([text], MAP, "listeners")
    assert listener == Listener("PLAINTEXT", host, port, "PLAINTEXT")
    assert listener.endpoint() == Endpoint("PLAINTEXT", host, port, "PLAINTEXT")


def test_a_name_of_ones_own_has_the_protocol_that_the_map_gives_it() -> None:
    found = parse_listeners(["inside://:1", "PLAINTEXT://:2"], MAP, "listeners")
    assert [(x.name, x.security_protocol) for x in found] == [
        ("INSIDE", "PLAINTEXT"),
        ("PLAINTEXT", "PLAINTEXT"),
    ]


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ([], "listeners is empty"),
        (["PLAINTEXT://:65536"], "listeners=PLAINTEXT://:65536 is not a listener"),
        (["PLAINTEXT://::1:9092"], "listeners=PLAINTEXT://::1:9092 is not a listener"),
        ([f"PLAINTEXT://:{'9' * 5000}"], "is not a listener"),
        (["PLAINTEXT:9092"], "listeners=PLAINTEXT:9092 is not a listener"),
        (["PLAINTEXT://host"], "listeners=PLAINTEXT://host is not a listener"),
        (["OUTSIDE://:1"], "listener.security.protocol.map has no protocol for OUTSIDE"),
        (["PLAINTEXT://:1", "plaintext://:2"], "must have a different name, PLAINTEXT has two"),
        (["PLAINTEXT://:9", "INSIDE://localhost:9"], "must have a different port, 9 has two"),
        (["PLAINTEXT://[::1]:9", "INSIDE://[::2]:9"], "must have a different port, 9 has two"),
        (["PLAINTEXT://:9", "INSIDE://[::1]:9"], "must have a different port, 9 has two"),
    ],
)
def test_what_cannot_be_listened_on(texts: list[str], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_listeners(texts, MAP, "listeners")
    assert said in str(refused.value)


def test_one_port_may_serve_both_internet_protocols_and_no_port_is_any_port() -> None:
    for texts in (
        ["PLAINTEXT://127.0.0.1:9092", "INSIDE://[::1]:9092"],
        ["PLAINTEXT://:0", "INSIDE://:0"],
    ):
        assert len(parse_listeners(texts, MAP, "listeners")) == 2


@pytest.mark.parametrize("item", ["INSIDE", "INSIDE:TLS", "INSIDE:"])
def test_a_map_that_cannot_be_read_is_named(item: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_listeners(["PLAINTEXT://:1"], [*MAP, item], "listeners")
    assert f"listener.security.protocol.map={item}" in str(refused.value)


BOUND = parse_listeners(["PLAINTEXT://0.0.0.0:9092", "INSIDE://:9093"], MAP, "listeners")


@pytest.mark.parametrize("given", [None, []])
def test_what_is_bound_is_advertised_unless_something_else_is(given: list[str] | None) -> None:
    assert parse_advertised_listeners(BOUND, given, MAP) == BOUND


def test_advertised_listeners_may_share_a_port_and_leave_some_out() -> None:
    """Two names of one load balancer."""
    both = ["PLAINTEXT://lb.example:443", "INSIDE://lb.inside:443"]
    assert [x.host for x in parse_advertised_listeners(BOUND, both, MAP)] == [
        "lb.example",
        "lb.inside",
    ]
    assert [x.name for x in parse_advertised_listeners(BOUND, ["INSIDE://h:1"], MAP)] == ["INSIDE"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("PLAINTEXT://0.0.0.0:9092", "cannot use the nonroutable address 0.0.0.0"),
        ("PLAINTEXT://[::]:9092", "cannot use the nonroutable address ::"),
        ("PLAINTEXT://host", "advertised.listeners=PLAINTEXT://host is not a listener"),
    ],
)
def test_what_clients_could_not_reach(given: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_advertised_listeners(BOUND, [given], MAP)
    assert said in str(refused.value)


def test_only_what_is_bound_can_be_advertised() -> None:
    with pytest.raises(ConfigError) as refused:
        parse_advertised_listeners(BOUND[:1], ["INSIDE://h:1"], MAP)
    assert "names INSIDE, which is not among listeners: PLAINTEXT" in str(refused.value)
