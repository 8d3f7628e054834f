"""Updates this broker's authorizer from ZooKeeper: follows `/kafka-acl-changes` and
`/kafka-acl-extended-changes` (`AclAuthorizer.AclChangedNotificationHandler`).
"""

from __future__ import annotations

import logging

from kafkapy.common.ports import Clock
from kafkapy.metadata.acl_authorizer import AclAuthorizer
from kafkapy.security.acls import ResourcePattern
from kafkapy.server.changes.stored_changes import StoredChangeListener
from kafkapy.zk.stores.acl_store import AclChange
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.stores.znodes import ZnodeError

_log = logging.getLogger("kafka.security.authorizer.AclAuthorizer")


class AclChangeListener(StoredChangeListener[AclChange, ResourcePattern]):
    """Updates the authorizer with every resource's entries at `start`, then with each change."""

    def __init__(self, store: ZkStore, clock: Clock, authorizer: AclAuthorizer) -> None:
        super().__init__(store.acls, clock, "ACLs", _log)
        self._acls = store.acls
        self._authorizer = authorizer
        self._is_loaded = False

    async def _read_all(self) -> None:
        """At the start, unreadable entries are an error, because some may deny. Later, the previous
        entries of the resource stay in force.
        """
        stored = await self._acls.get_all()
        for resource in set(self._authorizer.acls) - set(stored):
            self._authorizer.update(resource, ())
        for resource, found in stored.items():
            if not isinstance(found, ZnodeError):
                self._authorizer.update(resource, found)
            elif self._is_loaded:
                _log.error("Ignoring the ACLs of %s: %s", resource, found)
            else:
                raise found
        self._is_loaded = True

    async def _read(self, key: ResourcePattern) -> None:
        self._authorizer.update(key, await self._acls.get(key))

    def _position(self, change: AclChange) -> tuple[str, int]:
        return change
