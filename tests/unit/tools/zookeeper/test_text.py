"""The texts of ZooKeeper's shell."""

from __future__ import annotations

import pytest

from kafkapy.tools.zookeeper.text import (
    ShellError,
    client_addresses,
    parse_acl,
    split_flags,
    version_of,
)
from kafkapy.zk.stores.acls import Acl


def test_acls() -> None:
    assert parse_acl("world:anyone:cdrwa,digest:u:h:r") == [
        Acl(31, "world", "anyone"),
        Acl(1, "digest", "u:h"),
    ]


@pytest.mark.parametrize("text", ["", "world", "world:anyone", "world:anyone:", "world:anyone:x"])
def test_what_is_no_acl(text: str) -> None:
    with pytest.raises(ShellError, match="does not have the form scheme:id:perm"):
        parse_acl(text)


def test_addresses_for_clients() -> None:
    config = "server.1=a:1:2;b:3\nserver.2=c:1:2:observer;4\nversion=100000000"
    assert client_addresses(config) == "b:3,c:4"


def test_flags_end_at_the_first_word() -> None:
    assert split_flags(["-s", "-v", "7", "/a", "-x"], ("v",)) == (
        {"s": "", "v": "7"},
        ["/a", "-x"],
    )


def test_known_flags_stand_anywhere() -> None:
    words = ["/a", "-v", "7", "-5", "-s"]
    assert split_flags(words, ("v",), ("s", "v")) == ({"v": "7", "s": ""}, ["/a", "-5"])
    assert split_flags(["/a", "-v"], ("v",), ("v",)) == ({"v": ""}, ["/a"])


def test_versions() -> None:
    assert (version_of({}), version_of({"v": "7"})) == (-1, 7)
    with pytest.raises(ShellError, match="version seven is not a number"):
        version_of({"v": "seven"})


@pytest.mark.parametrize(
    ("text", "bits"),
    [("2147483648", 32), ("-2147483649", 32), (str(1 << 63), 64), ("9" * 5000, 64)],
)
def test_a_version_that_no_request_can_hold(text: str, bits: int) -> None:
    """Kazoo's connection ends with one."""
    assert version_of({"v": str((1 << bits - 1) - 1)}, bits) == (1 << bits - 1) - 1
    assert version_of({"v": str(-(1 << bits - 1))}, bits) == -(1 << bits - 1)
    with pytest.raises(ShellError, match=f"version {text} is not a number"):
        version_of({"v": text}, bits)
