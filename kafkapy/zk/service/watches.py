"""Watches of connections: on data, on children, persistent and recursive ones.

The rules are those of ZooKeeper 3.9's `WatchManager`:

- A connection may have a one-shot and a persistent watch on one path.
- A connection is notified once of each change.
- A recursive watch also fires for nodes below its own, and never for "children changed".
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from enum import IntFlag
from typing import Generic, TypeVar

from kafkapy.zk.embedded.znode_tree import parent_of
from kafkapy.zk.wire.codes import EventType, WatcherType

W = TypeVar("W", bound=Hashable)


class Mode(IntFlag):
    """Lifetime and extent of a watch."""

    STANDARD = 1
    PERSISTENT = 2
    RECURSIVE = 4
    ANY = 7


class WatchTable(Generic[W]):
    """Watches of one kind by path, and the paths of each watcher."""

    def __init__(self) -> None:
        self._by_path: dict[str, dict[W, int]] = {}
        self._paths: dict[W, set[str]] = {}
        self._recursive = 0

    def counts(self) -> tuple[int, int, int]:
        """The numbers of watchers, of paths, and of watches."""
        return len(self._paths), len(self._by_path), sum(map(len, self._paths.values()))

    def add(self, path: str, watcher: W, mode: Mode = Mode.STANDARD) -> None:
        """Add a watch on a path. The watcher's watches of other modes on it stay."""
        here = self._by_path.setdefault(path, {})
        before = here.get(watcher, 0)
        self._recursive += bool(mode & ~before & Mode.RECURSIVE)
        here[watcher] = before | mode
        self._paths.setdefault(watcher, set()).add(path)

    def has(self, path: str, watcher: W, modes: Mode) -> bool:
        """Whether a watcher has a watch of one of these modes on a path."""
        return bool(self._by_path.get(path, {}).get(watcher, 0) & modes)

    def remove(self, path: str, watcher: W, modes: Mode) -> bool:
        """Remove a watcher's watches of these modes on a path. Returns whether it had one."""
        if not self.has(path, watcher, modes):
            return False
        here = self._by_path[path]
        self._recursive -= bool(here[watcher] & modes & Mode.RECURSIVE)
        here[watcher] &= ~modes
        if not here[watcher]:
            del here[watcher]
            if not here:
                del self._by_path[path]
            paths = self._paths[watcher]
            paths.discard(path)
            if not paths:
                del self._paths[watcher]
        return True

    def drop(self, watcher: W) -> None:
        """Remove all watches of a watcher."""
        for path in tuple(self._paths.get(watcher, ())):
            self.remove(path, watcher, Mode.ANY)

    def trigger(self, path: str) -> dict[W, None]:
        """The watchers to notify of a change of a path. Removes their one-shot watches on it."""
        heard = dict.fromkeys(self._by_path.get(path, ()))
        for watcher in heard:
            self.remove(path, watcher, Mode.STANDARD)
        above = path
        while self._recursive and above != "/":
            above = parent_of(above)
            for watcher, modes in self._by_path.get(above, {}).items():
                if modes & Mode.RECURSIVE:
                    heard[watcher] = None
        return heard


class Watches(Generic[W]):
    """All watches of a server."""

    def __init__(self) -> None:
        self.data: WatchTable[W] = WatchTable()
        self.children: WatchTable[W] = WatchTable()

    def add_persistent(self, path: str, watcher: W, recursive: bool) -> None:
        """Add a watch that stays until it is removed."""
        self.data.add(path, watcher, Mode.RECURSIVE if recursive else Mode.PERSISTENT)
        if not recursive:
            self.children.add(path, watcher, Mode.PERSISTENT)

    def drop(self, watcher: W) -> None:
        """Remove all watches of a watcher, whose connection was closed."""
        self.data.drop(watcher)
        self.children.drop(watcher)

    def trigger(self, kind: EventType, path: str) -> dict[W, None]:
        """The watchers to notify of an event, each once."""
        if kind is EventType.NODE_CHILDREN_CHANGED:
            return self.children.trigger(path)
        heard = self.data.trigger(path)
        if kind is EventType.NODE_DELETED:
            heard |= self.children.trigger(path)
        return heard

    def has(self, path: str, watcher: W, kind: WatcherType) -> bool:
        """Whether a watcher has a watch of this type on a path."""
        return any(table.has(path, watcher, modes) for table, modes in self._meant(kind))

    def remove(self, path: str, watcher: W, kind: WatcherType) -> bool:
        """Remove a watcher's watches of this type on a path. Returns whether it had one."""
        removed = [table.remove(path, watcher, modes) for table, modes in self._meant(kind)]
        return any(removed)

    def _meant(self, kind: WatcherType) -> Iterator[tuple[WatchTable[W], Mode]]:
        if kind is WatcherType.DATA:
            yield self.data, Mode.STANDARD
        elif kind is WatcherType.CHILDREN:
            yield self.children, Mode.STANDARD
        elif kind is WatcherType.PERSISTENT_RECURSIVE:
            yield self.data, Mode.RECURSIVE
        else:
            modes = Mode.PERSISTENT if kind is WatcherType.PERSISTENT else Mode.ANY
            yield self.data, modes
            yield self.children, modes
