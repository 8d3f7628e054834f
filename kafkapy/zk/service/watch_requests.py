"""Requests that add, check or remove watches, or set them again after a reconnection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from kafkapy.zk.embedded.znode_tree import ZnodeTree
from kafkapy.zk.service.connection import Connection
from kafkapy.zk.service.refusals import Refused
from kafkapy.zk.service.watches import Watches
from kafkapy.zk.wire.codes import (
    SYNC_CONNECTED,
    AddWatchMode,
    ErrorCode,
    EventType,
    OpCode,
    WatcherType,
)
from kafkapy.zk.wire.replies import EmptyReply, NumberReply, Reply, WatcherEvent
from kafkapy.zk.wire.requests import SetWatchesRequest, WatchKindRequest

Kind = TypeVar("Kind", WatcherType, AddWatchMode)


class WatchRequests:
    """Answers requests about watches."""

    def __init__(self, tree: ZnodeTree, watches: Watches[Connection]) -> None:
        self._tree = tree
        self._watches = watches

    def answer(self, op: int, body: WatchKindRequest, client: Connection) -> Reply:
        """Answer addWatch, checkWatches or removeWatches.

        Raises:
            Refused: NOWATCHER, or MARSHALLINGERROR for an unknown kind.
        """
        if op == OpCode.ADD_WATCH:
            mode = _kind(AddWatchMode, body.kind)
            recursive = mode is AddWatchMode.PERSISTENT_RECURSIVE
            self._watches.add_persistent(body.path, client, recursive)
            return NumberReply(ErrorCode.OK)
        kind = _kind(WatcherType, body.kind)
        act = self._watches.remove if op == OpCode.REMOVE_WATCHES else self._watches.has
        if not act(body.path, client, kind):
            raise Refused(ErrorCode.NOWATCHER)
        return EmptyReply()

    def set_watches(self, body: SetWatchesRequest, client: Connection) -> list[WatcherEvent]:
        """Set the watches of a reconnected client again. Returns an event for each watch whose node
        changed meanwhile.
        """
        events = [
            WatcherEvent(kind, SYNC_CONNECTED, path)
            for kind, path in self._missed_events(body, client)
        ]
        for path in body.persistent:
            self._watches.add_persistent(path, client, recursive=False)
        for path in body.recursive:
            self._watches.add_persistent(path, client, recursive=True)
        return events

    def _missed_events(
        self, body: SetWatchesRequest, client: Connection
    ) -> Iterator[tuple[EventType, str]]:
        nodes, since = self._tree.nodes, body.relative_zxid
        for path in body.data:
            node = nodes.get(path)
            if node is None:
                yield EventType.NODE_DELETED, path
            elif node.stat.mzxid > since:
                yield EventType.NODE_DATA_CHANGED, path
            else:
                self._watches.data.add(path, client)
        for path in body.exist:
            if path in nodes:
                yield EventType.NODE_CREATED, path
            else:
                self._watches.data.add(path, client)
        for path in body.child:
            node = nodes.get(path)
            if node is None:
                yield EventType.NODE_DELETED, path
            elif (node.children_zxid or node.stat.czxid) > since:
                yield EventType.NODE_CHILDREN_CHANGED, path
            else:
                self._watches.children.add(path, client)


def _kind(kinds: type[Kind], number: int) -> Kind:
    try:
        return kinds(number)
    except ValueError:
        raise Refused(ErrorCode.MARSHALLINGERROR) from None
