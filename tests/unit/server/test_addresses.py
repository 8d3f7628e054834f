"""What people write for a machine."""

from __future__ import annotations

import asyncio

import pytest

from kafkapy.server.addresses import numeric_address, resolve


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("1.2.3", "1.2.0.3"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("999.1.1.1", None),
        ("localhost", None),
        ("", None),
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
        ("a" * 64 + ".invalid", None),
        ("%3A%3A1", None),
    ],
)
def test_names(host: str, address: str | None) -> None:
    assert asyncio.run(resolve(host)) == address
