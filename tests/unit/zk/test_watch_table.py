"""Which event fires which watch."""

from __future__ import annotations

import pytest

from kafkapy.zk.watch_table import WatchTable, WatchTarget
from kafkapy.zk.zookeeper import WatchEvent, WatchEventType


def watch(name: str) -> object:
    """A watch that is only compared."""

    def called(event: WatchEvent) -> None:
        raise AssertionError(f"{name} is not called in these tests: {event}")

    return called


@pytest.mark.parametrize(
    ("kind", "fired"),
    [
        (WatchEventType.CREATED, {WatchTarget.DATA, WatchTarget.ABSENCE}),
        (WatchEventType.DATA_CHANGED, {WatchTarget.DATA, WatchTarget.ABSENCE}),
        (WatchEventType.DELETED, {WatchTarget.DATA, WatchTarget.ABSENCE, WatchTarget.CHILDREN}),
        (WatchEventType.CHILDREN_CHANGED, {WatchTarget.CHILDREN}),
    ],
)
def test_an_event_fires_its_watches_once(kind: WatchEventType, fired: set[WatchTarget]) -> None:
    table = WatchTable()
    watches = {on: watch(on.value) for on in WatchTarget}
    for on, each in watches.items():
        table.add(on, "/a", each)  # type: ignore[arg-type]
        table.add(on, "/b", each)  # type: ignore[arg-type]
    event = WatchEvent(kind, "/a")
    assert table.fire(event) == [watches[on] for on in WatchTarget if on in fired]
    assert table.fire(event) == []
    for on in WatchTarget:
        assert table.paths(on) == (["/b"] if on in fired else ["/a", "/b"])


def test_one_watch_for_several_things_fires_once() -> None:
    table, one = WatchTable(), watch("one")
    for on in WatchTarget:
        table.add(on, "/a", one)  # type: ignore[arg-type]
        table.add(on, "/a", one)  # type: ignore[arg-type]
    assert table.fire(WatchEvent(WatchEventType.DELETED, "/a")) == [one]
    assert [table.paths(on) for on in WatchTarget] == [[], [], []]
