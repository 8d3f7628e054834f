"""Addresses that users give, well-formed and malformed."""

from __future__ import annotations

import pytest

from kafkapy.client.bootstrap_servers import parse_bootstrap_servers
from kafkapy.common.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:1", [("a", 1)]),
        (" a:1 , b:2,", [("a", 1), ("b", 2)]),
        ("[::1]:9092", [("::1", 9092)]),
        ("PLAINTEXT://h:9092", [("h", 9092)]),
    ],
)
def test_bootstrap_servers(text: str, expected: list[tuple[str, int]]) -> None:
    assert parse_bootstrap_servers(text) == expected


@pytest.mark.parametrize("text", ["", "a", "a:", ":1", "a:x", "a:65536", "a:²", f"a:{'9' * 5000}"])
def test_bad_bootstrap_servers(text: str) -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers"):
        parse_bootstrap_servers(text)
