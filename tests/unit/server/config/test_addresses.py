"""Host addresses: numeric texts, names to resolve, and peers' addresses in Java's notation."""

from __future__ import annotations

import asyncio

import pytest

from kafkapy.common.errors import ConfigError
from kafkapy.server.config.addresses import (
    client_address,
    numeric_address,
    parse_overrides,
    resolve,
)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("1.2.3", "1.2.0.3"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("0:0:0:0:0:0:0:1", "0:0:0:0:0:0:0:1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("999.1.1.1", None),
        ("localhost", None),
        ("", None),
        ("10.0.0.1\0", None),
        ("%3A%3A1", None),
    ],
)
def test_numbers(text: str, address: str | None) -> None:
    assert numeric_address(text) == address


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("localhost", "127.0.0.1"),
        ("10.1.2.3", "10.1.2.3"),
        ("nowhere.invalid", None),
        ("localhost\0", None),
        ("a" * 64 + ".invalid", None),
        ("%3A%3A1", None),
    ],
)
def test_names(host: str, address: str | None) -> None:
    assert asyncio.run(resolve(host)) == address


@pytest.mark.parametrize(
    ("told", "address"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("?", "?"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:db8::a:0:ff", "2001:db8:0:0:0:a:0:ff"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
    ],
)
def test_peers_have_the_addresses_that_java_would_write(told: str, address: str) -> None:
    assert client_address(told) == address


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


@pytest.mark.parametrize(
    "text",
    [
        "10.0.0.1",
        "10.0.0.1:many",
        "10.0.0.1:-1",
        "10.0.0.1:²",
        "5",
        "a b:1",
        "[::1]:1",
        "\0:1",
        "a:" + "9" * 5000,
    ],
)
def test_overrides_that_cannot_be_read_are_named(text: str) -> None:
    with pytest.raises(ConfigError, match=r"max\.connections\.per\.ip\.overrides=.* host:limit"):
        parse_overrides(f"10.0.0.2:1,{text}")
