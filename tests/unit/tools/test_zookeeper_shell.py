"""Commands of the shell against a tree in memory; the real one is in tests/cli."""

from __future__ import annotations

from typing import Any

import pytest
from kazoo.exceptions import NoNodeError
from kazoo.protocol.states import ZnodeStat

from kafkapy.tools.zookeeper_shell import ShellError, ZooKeeperShell, stat_lines

STAT = ZnodeStat(10, 11, 1_704_067_200_000, 1_704_067_201_000, 2, 3, 4, 0, 5, 6, 12)


class Tree:
    """What the shell asks of kazoo; nodes by path."""

    def __init__(self) -> None:
        self.nodes = {"/": b"", "/a": b"one", "/a/b": b"", "/c": b"two"}
        self.asked: list[Any] = []

    def get_children(self, path: str, include_data: bool = False) -> Any:
        if path not in self.nodes:
            raise NoNodeError
        head = path.rstrip("/") + "/"
        tails = [each.removeprefix(head) for each in self.nodes if each.startswith(head)]
        names = [tail for tail in tails if tail and "/" not in tail]
        return (names, STAT) if include_data else names

    def get(self, path: str) -> tuple[bytes, ZnodeStat]:
        return self.nodes[path], STAT

    def exists(self, path: str) -> ZnodeStat | None:
        return STAT if path in self.nodes else None

    def create(self, path: str, data: bytes, **flags: bool) -> str:
        self.asked.append((path, data, flags))
        return path + ("0000000001" if flags["sequence"] else "")

    def set(self, path: str, data: bytes, version: int) -> ZnodeStat:
        self.asked.append((path, data, version))
        return STAT

    def delete(self, path: str, version: int = -1, recursive: bool = False) -> None:
        self.asked.append((path, version, recursive))


def run(line: str) -> tuple[list[str], list[str], list[Any]]:
    """What is said, what is told, what was asked for."""
    tree = Tree()
    said: list[str] = []
    told: list[str] = []
    ZooKeeperShell(tree, said.append, told.append).run_line(line)
    return said, told, tree.asked


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ls /", ["[a, c]"]),
        ("ls -R /a", ["/a", "/a/b"]),
        ("get /a", ["one"]),
        ("get /a/b", ["null"]),
        ("getAllChildrenNumber /", ["3"]),
        ("ls -s /a", ["[b]", *stat_lines(STAT)]),
        ("  ", []),
    ],
)
def test_reading(line: str, said: list[str]) -> None:
    assert run(line)[0] == said


def test_a_stat() -> None:
    assert stat_lines(STAT) == [
        "cZxid = 0xa",
        "ctime = Mon Jan 01 00:00:00 UTC 2024",
        "mZxid = 0xb",
        "mtime = Mon Jan 01 00:00:01 UTC 2024",
        "pZxid = 0xc",
        "cversion = 3",
        "dataVersion = 2",
        "aclVersion = 4",
        "ephemeralOwner = 0x0",
        "dataLength = 5",
        "numChildren = 6",
    ]


def test_changing() -> None:
    _, told, asked = run("create -s -e /n 'two words'")
    assert told == ["Created /n0000000001"]
    assert asked == [("/n", b"two words", {"ephemeral": True, "sequence": True})]
    assert run('set -v 3 /a "x y"') == ([], [], [("/a", b"x y", 3)])
    assert run("delete /a")[2] == [("/a", -1, False)]
    assert run("deleteall /a")[2] == [("/a", -1, True)]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ls /nope", "Node does not exist: /nope"),
        ("stat /nope", "Node does not exist: /nope"),
        ("ls nope", "Path must start with / character"),
        ("get", "get needs a path"),
        ("set /a", "set needs a path and data"),
        ("delete -v x /a", "version x is not a number"),
        ("format /", "Command not found format: one of create, delete, "),
        ("get '/a", "No closing quotation"),
    ],
)
def test_what_goes_wrong(line: str, said: str) -> None:
    with pytest.raises(ShellError) as failed:
        run(line)
    assert said in str(failed.value)
