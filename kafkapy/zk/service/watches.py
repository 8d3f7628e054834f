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


class WatchManager(Generic[W]):
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
        watchers = self._by_path.setdefault(path, {})
        before = watchers.get(watcher, 0)
        self._recursive += bool(mode & ~before & Mode.RECURSIVE)
        watchers[watcher] = before | mode
        self._paths.setdefault(watcher, set()).add(path)

    def has(self, path: str, watcher: W, modes: Mode) -> bool:
        """Whether a watcher has a watch of one of these modes on a path."""
        return bool(self._by_path.get(path, {}).get(watcher, 0) & modes)

    def remove(self, path: str, watcher: W, modes: Mode) -> bool:
        """Remove a watcher's watches of these modes on a path. Returns whether it had one."""
        if not self.has(path, watcher, modes):
            return False
        watchers = self._by_path[path]
        self._recursive -= bool(watchers[watcher] & modes & Mode.RECURSIVE)
        watchers[watcher] &= ~modes
        if not watchers[watcher]:
            del watchers[watcher]
            if not watchers:
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
        notified = dict.fromkeys(self._by_path.get(path, ()))
        for watcher in notified:
            self.remove(path, watcher, Mode.STANDARD)
        ancestor = path
        while self._recursive and ancestor != "/":
            ancestor = parent_of(ancestor)
            for watcher, modes in self._by_path.get(ancestor, {}).items():
                if modes & Mode.RECURSIVE:
                    notified[watcher] = None
        return notified


class Watches(Generic[W]):
    """All watches of a server."""

    def __init__(self) -> None:
        self.data: WatchManager[W] = WatchManager()
        self.children: WatchManager[W] = WatchManager()

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
        notified = self.data.trigger(path)
        if kind is EventType.NODE_DELETED:
            notified |= self.children.trigger(path)
        return notified

    def has(self, path: str, watcher: W, kind: WatcherType) -> bool:
        """Whether a watcher has a watch of this type on a path."""
        return any(
            manager.has(path, watcher, modes) for manager, modes in self._managers_and_modes(kind)
        )

    def remove(self, path: str, watcher: W, kind: WatcherType) -> bool:
        """Remove a watcher's watches of this type on a path. Returns whether it had one."""
        removed = [
            manager.remove(path, watcher, modes)
            for manager, modes in self._managers_and_modes(kind)
        ]
        return any(removed)

    def _managers_and_modes(self, kind: WatcherType) -> Iterator[tuple[WatchManager[W], Mode]]:
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
