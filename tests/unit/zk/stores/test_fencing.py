"""Nothing is written by a controller that another one has followed."""

from __future__ import annotations

import pytest

from kafkapy.zk.embedded.memory import MemoryZooKeeper
from kafkapy.zk.stores.fencing import (
    ControllerMoved,
    Fence,
    create_recursive,
    ensure_path,
    fenced_multi,
    fenced_multis,
)
from kafkapy.zk.zookeeper import BadVersion, Create, NodeExists, NoNode, SetData
from tests.harness.cores.znodes import run, server


def prepared() -> tuple[MemoryZooKeeper, Fence]:
    zk = server().connect()
    run(zk.create("/controller_epoch", b"1"))
    return zk, Fence(1, 0)


def test_a_valid_fence_lets_writes_through() -> None:
    zk, fence = prepared()
    assert run(fenced_multi(zk, fence, [Create("/a", b"")])) == ["/a"]
    answers = run(fenced_multis(zk, fence, [[Create("/b", b"")], [Create("/a", b"")]]))
    assert answers[0] == ["/b"]
    assert isinstance(answers[1], NodeExists)


@pytest.mark.parametrize("gone", [False, True])
def test_a_stale_fence_lets_nothing_through(gone: bool) -> None:
    zk, fence = prepared()
    run(zk.set("/controller_epoch", b"2"))
    if gone:
        run(zk.delete("/controller_epoch"))
    with pytest.raises(ControllerMoved):
        run(fenced_multi(zk, fence, [Create("/a", b"")]))
    with pytest.raises(ControllerMoved):
        run(fenced_multis(zk, fence, [[Create("/a", b"")]]))
    assert run(zk.exists("/a")) is None


def test_other_errors_are_not_taken_for_a_moved_controller() -> None:
    zk, fence = prepared()
    run(zk.create("/a", b""))
    with pytest.raises(BadVersion):
        run(fenced_multi(zk, fence, [SetData("/a", b"", 9)]))
    with pytest.raises(NoNode):
        run(fenced_multi(zk, fence, [SetData("/b", b"")]))


def test_parents_are_made_on_demand() -> None:
    zk, _ = prepared()
    run(create_recursive(zk, "/x/y/z", b"1"))
    assert run(zk.get("/x/y")).data == b""
    assert run(zk.get("/x/y/z")).data == b"1"
    with pytest.raises(NodeExists):
        run(create_recursive(zk, "/x/y/z", b"2"))
    run(ensure_path(zk, "/x/y/z"))
    run(ensure_path(zk, "/p/q"))
    assert run(zk.get("/x/y/z")).data == b"1"
    assert run(zk.children("/p")) == ["q"]
