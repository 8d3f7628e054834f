"""Whole trees as they are written: versions, sequence numbers and ACLs as in the file."""

from __future__ import annotations

from collections.abc import Callable
from functools import partialmethod

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import make_acl, make_digest_acl, make_digest_acl_credential

from kafkapy.tools.zookeeper import tree_writer
from kafkapy.tools.zookeeper.tree_reader import TreeError, read_tree
from kafkapy.tools.zookeeper.tree_writer import VERSION_MAX, TreeWriter, absolute, make_root
from kafkapy.tools.zookeeper.znode_file import ZnodeRow

Connect = Callable[[str], KazooClient]
OPEN = ((31, "world", "anyone"),)
OWNER = (31, "digest", make_digest_acl_credential("owner", "word"))
ROWS = [
    ZnodeRow("/", b"root", 2, 4, OPEN),
    ZnodeRow("/changes", None, 0, 9, ((31, "world", "anyone"), OWNER)),
    ZnodeRow("/changes/change_0000000008", b"x", 0, 0, OPEN),
    ZnodeRow("/readable", b"data", 700, 1, (OWNER, (1, "world", "anyone"))),
    ZnodeRow("/readable/secret", b"hash", 3, 0, (OWNER,)),
    ZnodeRow("/seqid", b"", 1, 0, OPEN),
]


def write(client: KazooClient, rows: list[ZnodeRow]) -> TreeWriter:
    make_root(client)
    writer = TreeWriter(client, rows, {row.path: row for row in read_tree(client).rows})
    writer.write()
    return writer


def test_an_empty_tree_becomes_the_wanted_one(client_of: Connect) -> None:
    writer = write(client_of("/new/deep"), ROWS)
    assert writer.unrestored_versions() == []
    stranger = client_of("/new/deep")
    for path in ("/readable/secret", "/readable"):
        with pytest.raises(NoAuthError):
            stranger.set(path, b"")
    with pytest.raises(NoAuthError):
        stranger.get("/readable/secret")
    owner = client_of("/new/deep")
    owner.add_auth("digest", "owner:word")
    assert read_tree(owner).rows == ROWS
    made = owner.create("/changes/change_", b"", sequence=True)
    assert made == "/changes/change_0000000009"


def test_nobody_else_may_read_a_secret_while_it_is_written(
    client_of: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, stranger = client_of("/while"), client_of("/while")
    seen: list[str] = []

    def verify(writer: TreeWriter) -> None:
        with pytest.raises(NoAuthError):
            stranger.get("/readable/secret")
        seen.append("refused")

    monkeypatch.setattr(TreeWriter, "_verify", verify)
    write(client, ROWS)
    assert seen == ["refused"]


@pytest.mark.parametrize("may_read", [True, False])
def test_a_chroot_below_nodes_that_others_own(client_of: Connect, may_read: bool) -> None:
    """An ensemble of many: the root is its operator's, and each has a node of its own."""
    top = f"/shared{may_read}"
    operator = client_of("")
    operator.add_auth("digest", "operator:word")
    operator.create(f"{top}/team", b"", makepath=True)
    closed = [make_digest_acl("operator", "word", all=True)]
    if may_read:
        closed.append(make_acl("world", "anyone", read=True))
    operator.set_acls(top, closed)
    client = client_of(f"{top}/team/kafka")
    write(client, ROWS)
    assert client.get("/seqid")[0] == b""
    outside = client_of(f"{top}/mine")
    with pytest.raises(TreeError, match=f"does not let this client write {top}/mine"):
        make_root(outside)


def test_a_tree_that_is_not_empty_keeps_what_the_file_lacks(client_of: Connect) -> None:
    client = client_of("/used")
    make_root(client)
    client.create("/other", b"stays")
    client.create("/seqid", b"old")
    for _ in range(5):
        client.set("/seqid", b"old")
    client.create("/readable", b"data", acl=[make_acl("world", "anyone", all=True)])
    client.add_auth("digest", "owner:word")
    write(client, ROWS)
    found = {row.path: row for row in read_tree(client).rows}
    assert found["/other"].data == b"stays"
    assert found["/seqid"] == ZnodeRow("/seqid", b"", 6, 0, OPEN)
    assert found["/readable"] == ROWS[3]
    write(client, ROWS)
    assert {row.path: row for row in read_tree(client).rows} == found, "nothing is left to do"


def test_a_version_beyond_the_limit_begins_anew(client_of: Connect) -> None:
    rows = [ZnodeRow("/", b"", 0, 1, OPEN), ZnodeRow("/n", b"x", VERSION_MAX + 1, 0, OPEN)]
    client = client_of("/high")
    writer = write(client, rows)
    assert writer.unrestored_versions() == ["/n"]
    assert read_tree(client).rows[1] == rows[1]._replace(version=0)


def test_what_the_server_refuses_is_named(client_of: Connect) -> None:
    rows = [
        ZnodeRow("/", b"", 0, 1, OPEN),
        ZnodeRow("/n", b"x", 0, 0, ((31, "unheard-of", "CN=kafka"),)),
    ]
    with pytest.raises(TreeError, match="does not support a scheme in the ACL of /refused/n"):
        write(client_of("/refused"), rows)
    keeper = client_of("/kept")
    make_root(keeper)
    others = make_acl("ip", "10.0.0.1", all=True)
    keeper.set_acls("/", [others, make_acl("world", "anyone", read=True)])
    with pytest.raises(TreeError, match="does not let this client write /kept"):
        write(keeper, rows[:1])


@pytest.mark.parametrize(
    ("meddle", "said"),
    [
        (lambda client: client.set("/n", b"other"), "/n is not as in the file after the import"),
        (lambda client: client.delete("/n"), "/n is not there after the import"),
    ],
)
def test_what_is_not_as_written_is_told(
    client_of: Connect,
    monkeypatch: pytest.MonkeyPatch,
    meddle: Callable[[KazooClient], object],
    said: str,
) -> None:
    client = client_of(f"/wrong-{said[3:12].replace(' ', '-')}")

    def verify(writer: TreeWriter, honest: Callable[[TreeWriter], None]) -> None:
        meddle(client)
        honest(writer)

    monkeypatch.setattr(TreeWriter, "_verify", partialmethod(verify, TreeWriter._verify))
    rows = [ZnodeRow("/", None, 0, 1, OPEN), ZnodeRow("/n", b"x", 0, 0, OPEN)]
    with pytest.raises(TreeError, match=said):
        write(client, rows)


def test_large_nodes_go_in_requests_of_their_own(
    client_of: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    commit = tree_writer.commit

    def counted(client: KazooClient, operations: list[object]) -> None:
        sizes.append(len(operations))
        commit(client, operations)

    monkeypatch.setattr(tree_writer, "commit", counted)
    large = [ZnodeRow(f"/n{number}", b"x" * 300_000, 0, 0, OPEN) for number in range(3)]
    client = client_of("/large")
    write(client, [ZnodeRow("/", None, 0, 3, OPEN), *large])
    assert sizes.count(1) >= 3
    assert read_tree(client).rows[1:] == large


def test_paths_as_the_server_knows_them(client_of: Connect) -> None:
    assert absolute(client_of("/a"), "/") == "/a"
    assert absolute(client_of("/a"), "/b") == "/a/b"
    assert absolute(client_of(""), "/") == "/"
    assert absolute(client_of(""), "/b") == "/b"
