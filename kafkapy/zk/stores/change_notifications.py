"""Change notifications: sequential nodes by which brokers notify each other. Every reader deletes
those that are older than 15 minutes (`ZkNodeChangeNotificationListener`).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from typing import Final

from kafkapy.zk.stores import paths
from kafkapy.zk.zookeeper import NoNode, Watch, ZooKeeper

CHANGE_EXPIRATION_MS: Final = 15 * 60 * 1000


async def sequences(
    zk: ZooKeeper, folder: str, prefix: str, watch: Watch | None = None
) -> list[int]:
    """The sequence numbers of the notifications in a folder, ascending. Raises NoNode.

    Other children are left out: with an error, nobody would learn of changes any more.
    """
    names = await zk.children(folder, watch)
    is_notification = re.compile(re.escape(prefix) + "-?[0-9]{1,10}").fullmatch
    return sorted(paths.sequence_of(name) for name in names if is_notification(name))


async def purge(zk: ZooKeeper, notifications: Iterable[str], now_ms: int) -> None:
    """Delete the notifications (paths of a folder, ascending) that are older than 15 minutes. Stops
    at the first younger one, because there may be 10,000 of them after each of 10,000 changes.
    """
    for path in notifications:
        stat = await zk.exists(path)
        if stat is None:
            continue
        if now_ms - stat.ctime_ms <= CHANGE_EXPIRATION_MS:
            return
        with contextlib.suppress(NoNode):
            await zk.delete(path)
