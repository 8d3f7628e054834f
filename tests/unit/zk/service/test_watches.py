"""Watches: one-shot, persistent and recursive, side by side."""

from __future__ import annotations

from kafkapy.zk.service.watches import Mode, Watches, WatchManager
from kafkapy.zk.wire.codes import EventType, WatcherType

CREATED, DELETED = EventType.NODE_CREATED, EventType.NODE_DELETED
CHANGED, CHILDREN = EventType.NODE_DATA_CHANGED, EventType.NODE_CHILDREN_CHANGED


def test_a_one_shot_watch_is_told_once_and_leaves_nothing() -> None:
    table: WatchManager[str] = WatchManager()
    table.add("/a", "one")
    table.add("/a", "two")
    table.add("/a", "one")
    assert table.counts() == (2, 1, 2)
    assert list(table.trigger("/a")) == ["one", "two"]
    assert list(table.trigger("/a")) == []
    assert table.counts() == (0, 0, 0)


def test_a_persistent_watch_stays_beside_a_one_shot_one() -> None:
    table: WatchManager[str] = WatchManager()
    table.add("/a", "one")
    table.add("/a", "one", Mode.PERSISTENT)
    assert list(table.trigger("/a")) == ["one"]
    assert not table.has("/a", "one", Mode.STANDARD)
    assert list(table.trigger("/a")) == ["one"]
    table.drop("one")
    assert table.counts() == (0, 0, 0)


def test_a_recursive_watch_hears_of_all_below_but_not_of_children() -> None:
    watches: Watches[str] = Watches()
    watches.add_persistent("/a", "deep", recursive=True)
    watches.add_persistent("/a", "flat", recursive=False)
    assert list(watches.trigger(CREATED, "/a/b/c")) == ["deep"]
    assert list(watches.trigger(CHANGED, "/a")) == ["deep", "flat"]
    assert list(watches.trigger(CHILDREN, "/a")) == ["flat"]
    assert list(watches.trigger(CREATED, "/ab")) == []
    assert watches.remove("/a", "deep", WatcherType.PERSISTENT_RECURSIVE)
    assert list(watches.trigger(DELETED, "/a/b")) == []
    watches.add_persistent("/", "root", recursive=True)
    assert list(watches.trigger(CREATED, "/x")) == ["root"]
    watches.drop("root")
    assert watches.data._recursive == 0


def test_a_deletion_is_told_once_to_who_watches_data_and_children() -> None:
    watches: Watches[str] = Watches()
    watches.data.add("/a", "both")
    watches.children.add("/a", "both")
    watches.children.add("/a", "children")
    assert list(watches.trigger(DELETED, "/a")) == ["both", "children"]
    assert watches.children.counts() == (0, 0, 0)


def test_kinds_that_are_looked_for_and_removed() -> None:
    watches: Watches[str] = Watches()
    watches.data.add("/a", "me")
    watches.add_persistent("/a", "me", recursive=False)
    has = {kind: watches.has("/a", "me", kind) for kind in WatcherType}
    assert has == {
        WatcherType.CHILDREN: False,
        WatcherType.DATA: True,
        WatcherType.ANY: True,
        WatcherType.PERSISTENT: True,
        WatcherType.PERSISTENT_RECURSIVE: False,
    }
    assert not watches.remove("/a", "me", WatcherType.CHILDREN)
    assert watches.remove("/a", "me", WatcherType.PERSISTENT)
    assert not watches.has("/a", "me", WatcherType.PERSISTENT)
    assert watches.remove("/a", "me", WatcherType.ANY)
    assert not watches.remove("/a", "me", WatcherType.ANY)
