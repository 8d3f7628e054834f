"""The embedded store's file: what is durable, what a crash may cut, what refuses to start."""

from __future__ import annotations

import struct
import zlib
from random import Random

import pytest

from kafkapy.zk.embedded import journal as journal_module
from kafkapy.zk.embedded.journal import Journal, JournalCorrupt
from kafkapy.zk.embedded.znode_tree import (
    OPEN_TO_ALL,
    CloseSession,
    CreateZnode,
    OpenSession,
    SetAcl,
    Transaction,
    TreeNode,
    TreeOp,
    WriteZnode,
)
from kafkapy.zk.zookeeper import CreateMode, Delete, SetData, ZnodeStat
from tests.harness.cores.znodes import BytesFile, BytesRewrite, run, server


def nodes_of(file: BytesFile) -> dict[str, TreeNode]:
    return dict(server(file).tree.nodes)


def written() -> tuple[BytesFile, list[int], list[dict[str, TreeNode]]]:
    """A file of several writes, its size and the durable tree after each."""
    file = BytesFile()
    zk = server(file).connect()
    sizes, states = [len(file.data)], [nodes_of(BytesFile(file.data))]

    def note() -> None:
        sizes.append(len(file.data))
        states.append(nodes_of(BytesFile(file.data)))

    run(zk.create("/a", bytes(range(256))))
    note()
    run(zk.create("/a/s_", b"", CreateMode.PERSISTENT_SEQUENTIAL))
    note()
    run(zk.set("/a", b'{"k":"\xc3\xa9"}', 0))
    note()
    run(zk.multi([Delete("/a/s_0000000000"), SetData("/a", b"last")]))
    note()
    return file, sizes, states


def test_everything_comes_back() -> None:
    file, _, states = written()
    ensemble = server(BytesFile(file.data))
    assert ensemble.tree.nodes == states[-1]
    created = run(ensemble.connect().create("/a/s_", b"", CreateMode.PERSISTENT_SEQUENTIAL))
    assert created == "/a/s_0000000001", "sequence numbers go on"


def test_cut_anywhere_the_state_is_that_of_the_last_whole_write() -> None:
    file, sizes, states = written()
    for size in range(sizes[0], len(file.data) + 1):
        whole = max(i for i, end in enumerate(sizes) if end <= size)
        torn = BytesFile(file.data[:size])
        assert nodes_of(torn) == states[whole], f"cut at byte {size}"
        assert nodes_of(torn) == states[whole], "and it is repaired"


def test_noise_in_the_last_write_is_cut_too() -> None:
    file, sizes, states = written()
    for position in range(sizes[-2] + 8, len(file.data)):
        data = bytearray(file.data)
        data[position] ^= 0x55
        assert nodes_of(BytesFile(bytes(data))) == states[-2], f"noise at byte {position}"


@pytest.mark.parametrize("frame", [0, 1, 2])
def test_damage_before_the_last_write_refuses_to_start(frame: int) -> None:
    """In the length too, which says where the next frame begins."""
    file, sizes, _ = written()
    for byte in range([0, *sizes][frame], sizes[frame]):
        data = bytearray(file.data)
        data[byte] ^= 1 << byte % 8
        with pytest.raises(JournalCorrupt, match="embedded store is damaged"):
            server(BytesFile(bytes(data)))
    with pytest.raises(JournalCorrupt):
        server(BytesFile(b"\0" * 40))


def test_several_damaged_frames_before_the_last_write_refuse_to_start() -> None:
    file, sizes, _ = written()
    data = bytearray(file.data)
    for frame in sizes[:-2]:
        data[frame + 12] ^= 0x55
    with pytest.raises(JournalCorrupt, match="embedded store is damaged"):
        server(BytesFile(bytes(data)))


def test_a_frame_that_does_not_fit_the_tree_is_damage() -> None:
    file, sizes, _ = written()
    without_first_write = file.data[: sizes[0]] + file.data[sizes[1] :]
    with pytest.raises(JournalCorrupt, match="frame 1"):
        server(BytesFile(without_first_write))


def test_ephemerals_die_with_the_process_but_transaction_ids_go_on() -> None:
    file = BytesFile()
    ensemble = server(file)
    zk = ensemble.connect()
    run(zk.create("/lasting", b""))
    run(zk.create("/ephemeral", b"", CreateMode.EPHEMERAL))
    before = ensemble.tree.zxid
    again = server(file)
    assert sorted(again.tree.nodes) == ["/", "/lasting"]
    run(again.connect().create("/next", b""))
    assert again.tree.nodes["/next"].stat.czxid > before


def test_a_torn_write_that_was_refused_is_overwritten() -> None:
    file = BytesFile()
    zk = server(file).connect()
    run(zk.create("/a", b"1"))
    for tear_at in (0, 1, 7, 20):
        file.tear_at = tear_at
        with pytest.raises(Exception, match="cannot be written"):
            run(zk.create("/b", b"x" * 100))
    run(zk.create("/c", b""))
    assert sorted(nodes_of(file)) == ["/", "/a", "/c"]


def test_a_write_that_was_refused_is_not_there_after_a_restart() -> None:
    file = BytesFile()
    zk = server(file).connect()
    run(zk.create("/a", b"1"))
    file.tear_at = 20
    with pytest.raises(Exception, match="cannot be written"):
        run(zk.create("/b", b""))
    assert sorted(nodes_of(BytesFile(file.data))) == ["/", "/a"]


def test_the_file_stays_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "_GROWTH_BYTES_MIN", 2_000)
    file = BytesFile()
    zk = server(file).connect()
    run(zk.create("/a", b""))
    sizes = []
    for i in range(500):
        run(zk.set("/a", b"%d" % i))
        sizes.append(len(file.data))
    assert max(sizes) < 5_000
    assert run(server(file).connect().get("/a")).data == b"499"


def test_a_compaction_that_fails_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "_GROWTH_BYTES_MIN", 300)
    file = BytesFile()
    zk = server(file).connect()
    run(zk.create("/a", b""))

    file.is_full = True
    for i in range(50):
        run(zk.set("/a", b"%d" % i))
    assert run(server(BytesFile(file.data)).connect().get("/a")).data == b"49"
    file.is_full = False
    for i in range(50):
        run(zk.set("/a", b"%d" % i))
    assert len(file.data) < 1_500
    assert run(server(BytesFile(file.data)).connect().get("/a")).data == b"49"


@pytest.mark.parametrize("seed", range(20))
def test_a_compaction_in_slices_has_all_that_happens_meanwhile(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """The file is good after each write, also where it has no room for a while."""
    monkeypatch.setattr(journal_module, "_GROWTH_BYTES_MIN", 2_000)
    monkeypatch.setattr(journal_module, "_SLICE_NODES", 3)
    if seed % 2:
        monkeypatch.setattr(journal_module, "_SLICE_BYTES", 30)
        monkeypatch.setattr(journal_module, "_FRAME_BYTES_PER_NODE", 20)
    chance, file = Random(seed), BytesFile()
    ensemble = server(file)
    zk = ensemble.connect()
    begun: list[bytes] = []
    for number in range(400):
        path = f"/{chance.randrange(60)}"
        file.is_full = chance.random() < 0.005
        if path not in ensemble.tree.nodes:
            run(zk.create(path, b"%d" % number))
        elif chance.random() < 0.3:
            run(zk.delete(path))
        else:
            run(zk.set(path, b"%d" % number))
        if file.data[:8] not in begun:
            begun.append(file.data[:8])
        assert nodes_of(BytesFile(file.data)) == ensemble.tree.nodes
    assert len(begun) >= 3, "rewritten so often"
    assert len(file.data) < 20_000


def test_a_slice_is_bounded_by_its_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "_GROWTH_BYTES_MIN", 1)
    monkeypatch.setattr(journal_module, "_SLICE_BYTES", 1_000)
    file = BytesFile()
    zk = server(file).connect()
    for number in range(20):
        run(zk.create(f"/{number}", b"x" * 600))
    snapshot, sizes, write = file.data[:8], [], BytesRewrite.write

    def noted(rewrite: BytesRewrite, data: bytes) -> None:
        if data.startswith(b",["):
            sizes.append(len(data))
        write(rewrite, data)

    monkeypatch.setattr(BytesRewrite, "write", noted)
    for _ in range(60):
        run(zk.set("/0", b"y" * 600))
    assert file.data[:8] != snapshot
    assert max(sizes) < 2_500
    assert len(sizes) >= 9, "two nodes each"


def test_an_unknown_format_is_refused() -> None:
    file = BytesFile()
    Journal(file).recover(0)
    payload = file.data[8:].replace(b'"format":2', b'"format":9')
    with pytest.raises(JournalCorrupt, match="format 9 is neither 1 nor 2"):
        server(BytesFile(journal_module._frame(payload)))


def test_a_file_of_format_1_is_read() -> None:
    """A snapshot and three writes, written by a broker before there were ACLs and sessions."""
    frames = [
        b'{"format":1,"zxid":4,"nodes":[["/","",0,0,0,0,0,0,1],["/a","\xc3\xa9",3,4,5,6,1,0,2]]}',
        b'[5,70,1,[["create","/a/s_","x","persistent_sequential"],["set","/a","y",-1]]]',
        b'[6,71,9,[["create","/e","","ephemeral"]]]',
        b'[7,72,1,[["check","/a",2],["delete","/a/s_0000000002",0]]]',
    ]
    data = b"".join(struct.pack(">II", len(each), zlib.crc32(each)) + each for each in frames)
    file = BytesFile(data)
    nodes = nodes_of(file)
    assert {path: node.data for path, node in nodes.items()} == {"/": b"", "/a": b"y"}
    assert nodes["/a"].stat == ZnodeStat(3, 5, 5, 70, 2)
    assert (nodes["/a"].children_created, nodes["/a"].acl) == (3, OPEN_TO_ALL)
    assert nodes_of(file) == nodes, "and written anew"


def test_what_a_server_keeps_comes_back() -> None:
    file = BytesFile()
    journal = Journal(file)
    tree = journal.recover(0)
    acl = ((1, "world", "anyone"), (31, "digest", "u:h"))
    session = OpenSession(9, bytes(range(16)), 4000)
    ops: list[list[TreeOp]] = [
        [session],
        [CreateZnode("/null", None, acl), CreateZnode("/e", b"\xff", acl, ephemeral=True)],
        [WriteZnode("/null", b""), WriteZnode("/null", None), SetAcl("/e", acl[:1])],
        [],
        [OpenSession(10, b"p" * 16, 1), CloseSession(10)],
    ]
    transactions = [Transaction(zxid, 50, 9, each) for zxid, each in enumerate(ops, 1)]
    for transaction in transactions:
        tree.apply(transaction)
    journal.append(transactions[:2], tree)
    journal.append(transactions[2:], tree)
    for _ in range(2):  # from the writes, then from the snapshot that was made of them
        found = Journal(file).recover(0)
        assert found.nodes == tree.nodes
        assert found.sessions == {9: session}
        assert (found.zxid, found.last_session_id) == (5, 10)
        assert found.ephemerals(9) == ["/e"]
    assert found.nodes["/e"].acl == acl[:1]
    assert found.nodes["/null"].data is None
