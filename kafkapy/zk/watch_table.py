"""The watches of one ZooKeeper session, which its client must keep.

A server removes a connection's watches with the connection. After a reconnection the client sets
them again, by kind: those on a node's data, on a missing node, and on children.
"""

from __future__ import annotations

from enum import Enum

from kafkapy.zk.zookeeper import Watch, WatchEvent, WatchEventType


class WatchTarget(Enum):
    """Kinds of changes that fire a watch."""

    DATA = "data"
    ABSENCE = "absence"
    CHILDREN = "children"


_FIRED_BY = {
    WatchEventType.CREATED: (WatchTarget.DATA, WatchTarget.ABSENCE),
    WatchEventType.DATA_CHANGED: (WatchTarget.DATA, WatchTarget.ABSENCE),
    WatchEventType.DELETED: (WatchTarget.DATA, WatchTarget.ABSENCE, WatchTarget.CHILDREN),
    WatchEventType.CHILDREN_CHANGED: (WatchTarget.CHILDREN,),
}


class WatchTable:
    """One-shot watches by kind and path, in the order of registration."""

    def __init__(self) -> None:
        self._watches: dict[WatchTarget, dict[str, dict[Watch, None]]] = {
            target: {} for target in WatchTarget
        }

    def add(self, target: WatchTarget, path: str, watch: Watch) -> None:
        """Add a watch, unless it is there already."""
        self._watches[target].setdefault(path, {})[watch] = None

    def fire(self, event: WatchEvent) -> list[Watch]:
        """Remove and return the watches that an event fires, each once."""
        fired: dict[Watch, None] = {}
        for target in _FIRED_BY[event.kind]:
            fired |= self._watches[target].pop(event.path, {})
        return list(fired)

    def paths(self, target: WatchTarget) -> list[str]:
        """The watched paths of one kind."""
        return list(self._watches[target])
