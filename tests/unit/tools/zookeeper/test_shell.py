"""Commands of the shell against a tree in memory; the real one is in tests/cli."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from kazoo.exceptions import (
    BadArgumentsError,
    KazooException,
    NoAuthError,
    NoNodeError,
    NotEmptyError,
)
from kazoo.protocol.states import WatchedEvent, ZnodeStat
from kazoo.security import make_acl

from kafkapy.tools.zookeeper.shell import HELP, ZooKeeperShell
from kafkapy.tools.zookeeper.text import ShellError, stat_lines

STAT = ZnodeStat(10, 11, 1_704_067_200_000, 1_704_067_201_000, 2, 3, 4, 0, 5, 6, 12)


class Tree:
    """The part of kazoo's client that the shell uses; nodes by path."""

    def __init__(self) -> None:
        self.nodes = {"/": b"", "/a": b"one", "/a/b": b"", "/c": b"two"}
        self.asked: list[Any] = []
        self.watches: list[Any] = []

    def get_children(self, path: str, watch: Any = None, include_data: bool = False) -> Any:
        self.watches.append(watch)
        if path not in self.nodes:
            raise NoNodeError
        head = path.rstrip("/") + "/"
        tails = [each.removeprefix(head) for each in self.nodes if each.startswith(head)]
        names = [tail for tail in tails if tail and "/" not in tail]
        return (names, STAT) if include_data else names

    def get(self, path: str, watch: Any = None) -> tuple[bytes, ZnodeStat]:
        self.watches.append(watch)
        if path == "/zookeeper/config":
            return b"server.1=h:2888:3888:participant;0.0.0.0:2181\nversion=0", STAT
        return self.nodes[path], STAT

    def exists(self, path: str, watch: Any = None) -> ZnodeStat | None:
        return STAT if path in self.nodes else None

    def create(self, path: str, data: bytes, acl: Any = None, **flags: bool) -> str:
        self.asked.append((path, data, *([acl] if acl else []), flags))
        return path + ("0000000001" if flags["sequence"] else "")

    def set(self, path: str, data: bytes, version: int) -> ZnodeStat:
        self.asked.append((path, data, version))
        return STAT

    def get_acls(self, path: str) -> tuple[Any, ZnodeStat]:
        return [make_acl("world", "anyone", read=True)], STAT

    def set_acls(self, path: str, acls: Any, version: int) -> ZnodeStat:
        self.asked.append((path, acls, version))
        return STAT

    def add_auth(self, scheme: str, credential: str) -> None:
        self.asked.append((scheme, credential))

    def reconfig(self, *changes: Any) -> tuple[bytes, ZnodeStat]:
        self.asked.append(changes)
        return b"server.2=new", STAT

    def delete(self, path: str, version: int = -1) -> None:
        self.asked.append((path, version))


def run(line: str) -> tuple[list[str], list[str], list[Any]]:
    """Output, messages and requests of one line of the shell."""
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
        ("getAcl /a", ["'world,'anyone", ": r"]),
        ("getAcl -s /a", ["'world,'anyone", ": r", *stat_lines(STAT)]),
        ("config", ["server.1=h:2888:3888:participant;0.0.0.0:2181\nversion=0"]),
        ("config -c", ["0.0.0.0:2181"]),
        ("printwatches", ["printwatches is on"]),
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


def test_numbers_are_told_as_java_tells_them() -> None:
    """The owner of a container, and a session of the 255th server, are negative Java longs."""
    lines = stat_lines(STAT._replace(ephemeralOwner=-(1 << 63), czxid=-1))
    assert "ephemeralOwner = 0x8000000000000000" in lines
    assert lines[0] == "cZxid = 0xffffffffffffffff"


def test_changing() -> None:
    _, told, asked = run("create -s -e /n 'two words'")
    assert told == ["Created /n0000000001"]
    assert asked == [("/n", b"two words", {"ephemeral": True, "sequence": True})]
    assert run('set -v 3 /a "x y"') == ([], [], [("/a", b"x y", 3)])
    assert run("delete /a")[2] == [("/a", -1)]
    assert run("deleteall -b 10 /a")[2] == [("/a/b", -1), ("/a", -1)]
    assert run("addauth digest me:secret")[2] == [("digest", "me:secret")]


def test_flags_may_follow_the_path() -> None:
    """A version that is passed over deletes what another has changed meanwhile."""
    assert run("delete /a -v 3")[2] == [("/a", 3)]
    assert run("set /a -v 3 -5")[2] == [("/a", b"-5", 3)]
    assert run("get /a -s")[0] == ["one", *stat_lines(STAT)]
    assert run("ls /a -R")[0] == ["/a", "/a/b"]
    assert run("create /n x -e")[2][0][2] == {"ephemeral": True, "sequence": False}
    with pytest.raises(ShellError, match="version  is not a number"):
        run("delete /a -v")


def test_flags_may_stand_together() -> None:
    assert run("create -es /n x")[2][0][2] == {"ephemeral": True, "sequence": True}
    assert run("ls -sR /a")[0] == ["/a", "/a/b"]


def test_a_tree_is_listed_in_the_order_of_zookeepers_shell() -> None:
    """As ZooKeeper 3.8.4 lists it: the children of a node, then those of each child."""
    assert run("ls -R /")[0] == ["/", "/a", "/c", "/a/b"]


def test_a_node_that_goes_away_does_not_end_the_list() -> None:
    """Of a cluster that works, some node always does."""

    class Live(Tree):
        def get_children(self, path: str, watch: Any = None, include_data: bool = False) -> Any:
            if path == "/a":
                raise NoNodeError
            return super().get_children(path, watch, include_data)

    for line, expected in [("ls -R /", ["/", "/a", "/c"]), ("getAllChildrenNumber /", ["2"])]:
        said: list[str] = []
        ZooKeeperShell(Live(), said.append, said.append).run_line(line)
        assert said == expected


def test_a_tree_may_be_deep() -> None:
    tree = Tree()
    tree.nodes = {"/" + "/".join(["a"] * depth): b"" for depth in range(2000)}
    said: list[str] = []
    shell = ZooKeeperShell(tree, said.append, said.append)
    shell.run_line("ls -R /")
    assert said == list(tree.nodes)
    shell.run_line("deleteall /a")
    assert tree.asked == [(path, -1) for path in reversed(said[1:])]


def test_a_deleteall_that_is_refused_a_node_names_it_and_deletes_the_others() -> None:
    """Or nobody knows what is left of the tree. The sentence is that of ZooKeeper 3.8.4."""

    refusals: dict[str, type[KazooException]] = {
        "/a": NotEmptyError,
        "/a/b": NoAuthError,
        "/c": NoNodeError,
        "/": BadArgumentsError,
    }

    class Refusing(Tree):
        def delete(self, path: str, version: int = -1) -> None:
            if path in refusals:
                raise refusals[path]
            super().delete(path, version)

    tree = Refusing()
    tree.nodes["/b"] = b""
    shell = ZooKeeperShell(tree, [].append, [].append)
    lines = "Failed to delete some node(s) in the subtree!\nAuthentication is not valid : /a/b\n"
    with pytest.raises(ShellError, match=f"^{re.escape(lines)}BadArgumentsError: /$"):
        shell.run_line("deleteall /")
    assert tree.asked == [("/b", -1)]
    with pytest.raises(ShellError, match=r"subtree!\nAuthentication is not valid : /a/b$"):
        shell.run_line("deleteall /a")
    del refusals["/a/b"]
    with pytest.raises(ShellError, match=r"subtree!\nNode not empty: /a$"):
        shell.run_line("deleteall /a")


def test_two_dashes_end_the_flags() -> None:
    assert run("set -- /a -s")[2] == [("/a", b"-s", -1)]


READ = make_acl("digest", "u:h", read=True)


def test_acls_are_set_on_a_node_or_on_all_below() -> None:
    assert run("create /n x digest:u:h:r")[2][0][2] == [READ]
    assert run("setAcl -v 2 /a digest:u:h:r")[2] == [("/a", [READ], 2)]
    said, _, asked = run("setAcl -R -s / digest:u:h:r")
    assert [path for path, _, _ in asked] == ["/", "/a", "/c", "/a/b"]
    assert said == stat_lines(STAT) * 4


def test_a_node_that_refuses_an_acl_leaves_no_other_without_it() -> None:
    """Or a tree that was to be closed stays open, because a node of it went away."""

    class Refusing(Tree):
        def set_acls(self, path: str, acls: Any, version: int) -> ZnodeStat:
            refusals = {"/a": NoAuthError, "/a/b": NoNodeError}
            if path in refusals:
                raise refusals[path]
            return super().set_acls(path, acls, version)

    tree = Refusing()
    shell = ZooKeeperShell(tree, [].append, [].append)
    with pytest.raises(ShellError, match=r"^Authentication is not valid : /a$"):
        shell.run_line("setAcl -R / digest:u:h:r")
    assert [path for path, _, _ in tree.asked] == ["/", "/c"]
    with pytest.raises(ShellError, match=r"^Node does not exist: /a/b$"):
        shell.run_line("setAcl /a/b digest:u:h:r")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/a/", "Path must not end with / character"),
        ("//", "Path must not end with / character"),
        ("//a", 'Invalid path string "//a" caused by empty node name specified @1'),
        ("/a//b", 'Invalid path string "/a//b" caused by empty node name specified @3'),
    ],
)
@pytest.mark.parametrize("command", ["deleteall", "delete", "set", "ls", "create"])
def test_an_empty_variable_in_a_path_deletes_no_other_tree(
    command: str, path: str, said: str
) -> None:
    """kazoo takes `//` for the root, and `/a/` for /a. The texts are those of ZooKeeper 3.8.4."""
    tree = Tree()
    with pytest.raises(ShellError, match=f"^{re.escape(said)}$"):
        ZooKeeperShell(tree, [].append, [].append).run([command, path, "x"])
    assert tree.asked == []


def test_the_number_of_a_sequential_node_may_be_its_whole_name() -> None:
    assert run("create -s /a/ x")[1] == ["Created /a/0000000001"]


def test_members_of_an_ensemble_are_changed(tmp_path: Path) -> None:
    said, _, asked = run("reconfig -remove 3 -add server.2=new -v 5")
    assert said == ["Committed new configuration:\nserver.2=new"]
    assert asked == [("server.2=new", "3", None, 5)]
    file = tmp_path / "dynamic"
    file.write_text("server.1=a;1\nserver.2=b;2\nversion=9\n")
    assert run(f"reconfig -file {file}")[2] == [(None, None, "server.1=a;1,server.2=b;2", -1)]


def test_members_in_another_encoding_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "members"
    file.write_bytes(b"# \xe9\nserver.1=a:1:2;3\n")
    with pytest.raises(ShellError, match=f"{file} is not UTF-8"):
        run(f"reconfig -file {file}")


def test_a_watch_tells_once_unless_it_is_switched_off() -> None:
    tree, said = Tree(), []
    shell = ZooKeeperShell(tree, said.append, said.append)
    for line in ("get /c", "get -w /c"):
        shell.run_line(line)
    silent, watch = tree.watches
    watch(WatchedEvent("CHANGED", "CONNECTED", "/c"))
    told = "\nWATCHER::\n\nWatchedEvent state:SyncConnected type:NodeDataChanged path:/c"
    assert (silent, said) == (None, ["two", "two", told])
    shell.run_line("printwatches off")
    watch(WatchedEvent("DELETED", "CONNECTED", "/c"))
    assert said[3:] == []


def test_lines_of_a_prompt_are_kept_and_done_again() -> None:
    said: list[str] = []
    shell = ZooKeeperShell(Tree(), said.append, said.append)
    for line in ("get /a", "history", "redo 0", "history"):
        shell.run_line(line)
    first, again = ["0 - get /a", "1 - history"], ["2 - get /a", "3 - history"]
    assert said == ["one", *first, "one", *first, *again]
    with pytest.raises(ShellError, match="Command index out of range"):
        shell.run_line("redo 9")
    with pytest.raises(ShellError, match="Command index out of range"):
        shell.run_line("redo " + "9" * 5000)


@pytest.mark.parametrize(
    ("typed", "data"),
    [
        ('{"version":1,"config":{}}', '{"version":1,"config":{}}'),
        ("'{\"version\": 1}'", '{"version": 1}'),
        ('"two words"', "two words"),
        ("it's", "it's"),
        (r"C:\temp", r"C:\temp"),
        (r'"a\b"', r"a\b"),
        ("''", ""),
        ("\u00a0x", "\u00a0x"),
    ],
)
def test_json_of_a_prompt_keeps_its_quotes(typed: str, data: str) -> None:
    """Or `set /config/topics/t {"version":1}` leaves a znode that no broker can read."""
    assert run(f"  set /a  {typed} \n")[2] == [("/a", data.encode(), -1)]


def test_a_redo_is_not_done_again() -> None:
    shell = ZooKeeperShell(Tree(), print, print)
    with pytest.raises(ShellError, match="Command index out of range"):
        shell.run_line("redo 0")
    with pytest.raises(ShellError, match="No redoing redos"):
        shell.run_line("redo 0")


def test_what_is_not_utf_8_is_not_kept() -> None:
    said: list[str] = []
    shell = ZooKeeperShell(Tree(), said.append, said.append)
    with pytest.raises(ShellError):
        shell.run_line("set /a \udcff")
    shell.run_line("history")
    assert said == ["0 - history"]
    with pytest.raises(ShellError, match=r"'\\udcff' is not UTF-8"):
        shell.run(["create", "/x", "\udcff"])


def test_help_names_every_command() -> None:
    said, _, _ = run("help")
    assert said == list(HELP)
    for usage in HELP:
        if (name := usage.split()[0]) not in ("close", "quit"):
            with pytest.raises(ShellError) as failed:
                run("nonsense")
            assert f" {name}" in str(failed.value)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("ls /nope", "Node does not exist: /nope"),
        ("stat /nope", "Node does not exist: /nope"),
        ("deleteall /nope", "Node does not exist: /nope"),
        ("ls nope", "Path must start with / character"),
        ("get", "get needs a path"),
        ("set /a", "set needs a path and data"),
        ("delete -v x /a", "version x is not a number"),
        ("delete -v 2147483648 /a", "version 2147483648 is not a number"),
        ("get /a/../c", "Invalid path string /a/../c"),
        ("create /a/. x", "Invalid path string /a/."),
        ("get /\udcff", r"'get /\udcff' is not UTF-8"),
        ("set /a \udcff", r"'set /a \udcff' is not UTF-8"),
        ("format /", "Command not found format: one of addauth, config, "),
        ("get '/a", "No closing quotation"),
        ("setAcl /a", "setAcl needs a path and an acl"),
        ("setAcl /a world:anyone", "world:anyone does not have the form scheme:id:perm"),
        ("setAcl /a world:anyone:rx", "world:anyone:rx does not have the form scheme:id:perm"),
        ("addauth", "addauth needs a scheme"),
        ("create -c /n", "Unrecognized option: -c"),
        ("create -t 5 /n", "Unrecognized option: -t"),
        ("create -ec /n", "Unrecognized option: -ec"),
        ("delete -R /a", "Unrecognized option: -R"),
        ("reconfig -file /nope/f", "Cannot read /nope/f: No such file or directory"),
    ],
)
def test_what_goes_wrong(line: str, said: str) -> None:
    with pytest.raises(ShellError) as failed:
        run(line)
    assert said in str(failed.value)
