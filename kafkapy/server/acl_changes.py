"""Follows `/kafka-acl-changes` and `/kafka-acl-extended-changes`: this broker's authorizer has the
entries of ZooKeeper (`AclAuthorizer.AclChangedNotificationHandler`).

A notification names a resource, whose entries are read when it is processed. Notifications older
than 15 minutes are deleted by whoever sees them.
"""

from __future__ import annotations

import asyncio
import logging

from kafkapy.common.acls import ResourcePattern
from kafkapy.common.ports import Clock
from kafkapy.metadata.acl_authorizer import AclAuthorizer
from kafkapy.server.change_follower import ChangeFollower
from kafkapy.zk.store import ZkStore
from kafkapy.zk.znodes import ZnodeError

_log = logging.getLogger("kafka.security.authorizer.AclAuthorizer")


class AclChangeListener:
    """Gives the authorizer every resource's entries at `start`, then each change."""

    def __init__(self, store: ZkStore, clock: Clock, authorizer: AclAuthorizer) -> None:
        self._acls = store.acls
        self._clock = clock
        self._authorizer = authorizer
        self._seen: dict[str, int] = {}  # the last sequence number by folder
        self._applying = asyncio.Lock()
        self._follower = ChangeFollower("changes of ACLs", self.process, _log)

    async def start(self) -> None:
        """Load everything, then follow the changes."""
        await self._acls.create_paths()
        await self.reload()
        self._follower.start()

    async def stop(self) -> None:
        """End following."""
        await self._follower.stop()

    async def reload(self) -> None:
        """Have what is stored now, whatever was missed: at the start and after a lost session."""
        async with self._applying:
            # The watch first: a change made while the entries are read is then read once more.
            for change in await self._acls.changes(self._follower.on_watch):
                self._seen[change.folder] = change.sequence
            stored = await self._acls.get_all()
            for resource in set(self._authorizer.acls) - set(stored):
                self._authorizer.update(resource, ())
            for resource, entries in stored.items():
                self._authorizer.update(resource, entries)

    async def refresh(self, resource: ResourcePattern) -> None:
        """Have the entries of one resource as they are stored now.

        In turn with the others: of two reads the later one must be what stays.
        """
        async with self._applying:
            self._authorizer.update(resource, await self._acls.get(resource))

    async def process(self) -> None:
        """Apply the changes newer than the last ones seen, and wait for the next."""
        changes = await self._acls.changes(self._follower.on_watch)
        for change in changes:
            if change.sequence <= self._seen.get(change.folder, -1):
                continue
            try:
                resource = await self._acls.changed(change)
                if resource is not None:
                    await self.refresh(resource)
            except ZnodeError as error:
                _log.error("Ignoring a change of ACLs: %s", error)
            self._seen[change.folder] = change.sequence
        await self._acls.purge(changes, self._clock.time_ms())
