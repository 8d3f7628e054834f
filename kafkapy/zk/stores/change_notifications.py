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

    Children with other names are left out: an error would end the task that follows the changes.
    """
    names = await zk.children(folder, watch)
    is_notification = re.compile(re.escape(prefix) + "-?[0-9]{1,10}").fullmatch
    return sorted(paths.sequence_of(name) for name in names if is_notification(name))


async def purge(zk: ZooKeeper, notifications: Iterable[str], now_ms: int) -> None:
    """Delete the notifications (paths of a folder, ascending) that are older than 15 minutes.

    Stops at the first younger one: with 10,000 recent changes, each change would otherwise read all
    10,000 notifications.
    """
    for path in notifications:
        stat = await zk.exists(path)
        if stat is None:
            continue
        if now_ms - stat.ctime_ms <= CHANGE_EXPIRATION_MS:
            return
        with contextlib.suppress(NoNode):
            await zk.delete(path)
