"""The watches of one ZooKeeper session, which its client must keep.

A server removes a connection's watches with the connection. After a reconnection the client sets
them again, by kind: those on a node's data, on a missing node, and on children.
"""

from __future__ import annotations

from enum import Enum

from kafkapy.zk.zookeeper import Watch, WatchEvent, WatchKind


class WatchOn(Enum):
    """Kinds of changes that fire a watch."""

    DATA = "data"
    ABSENCE = "absence"
    CHILDREN = "children"


_FIRED_BY = {
    WatchKind.CREATED: (WatchOn.DATA, WatchOn.ABSENCE),
    WatchKind.DATA_CHANGED: (WatchOn.DATA, WatchOn.ABSENCE),
    WatchKind.DELETED: (WatchOn.DATA, WatchOn.ABSENCE, WatchOn.CHILDREN),
    WatchKind.CHILDREN_CHANGED: (WatchOn.CHILDREN,),
}


class WatchTable:
    """One-shot watches by kind and path, in the order of registration."""

    def __init__(self) -> None:
        self._watches: dict[WatchOn, dict[str, dict[Watch, None]]] = {on: {} for on in WatchOn}

    def add(self, on: WatchOn, path: str, watch: Watch) -> None:
        """Add a watch, unless it is there already."""
        self._watches[on].setdefault(path, {})[watch] = None

    def fire(self, event: WatchEvent) -> list[Watch]:
        """Remove and return the watches that an event fires, each once."""
        fired: dict[Watch, None] = {}
        for on in _FIRED_BY[event.kind]:
            fired |= self._watches[on].pop(event.path, {})
        return list(fired)

    def paths(self, on: WatchOn) -> list[str]:
        """The watched paths of one kind."""
        return list(self._watches[on])
