"""Follows `/config/changes`: every broker applies each entity's new configs, in order.

A notification only names the entity; its configs are read when it is processed, so two quick
changes may be applied as one. Every broker deletes the notifications older than 15 minutes that it
sees (`kafka.common.ZkNodeChangeNotificationListener`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from kafkapy.common.errors import ConfigError, KafkapyError
from kafkapy.common.ports import Clock
from kafkapy.server.changes.change_follower import ChangeNotificationListener
from kafkapy.server.requests.turns import chunks
from kafkapy.zk.stores.paths import CONFIG_TYPES
from kafkapy.zk.stores.store import ZkStore
from kafkapy.zk.stores.znodes import ConfigChange, ZnodeError
from kafkapy.zk.zookeeper import Watch

# (entity type, entity name, its configs); names of users, clients and ips are sanitized.
Apply = Callable[[str, str, Mapping[str, str]], None]

_CATCH_UP_LIMIT_S: Final = 5.0

_log = logging.getLogger("kafka.common.ZkNodeChangeNotificationListener")


class ConfigChangeListener:
    """Calls `apply` for every entity at `start`, then for each change. `apply` may raise
    ConfigError, which is logged; the old configs then stay in force.
    """

    def __init__(self, store: ZkStore, clock: Clock, apply: Apply) -> None:
        self._store = store
        self._clock = clock
        self._apply = apply
        self._last_executed = -1
        self._configured_names: dict[str, set[str]] = {}  # names of entities with configs, by type
        self._apply_lock = asyncio.Lock()
        self._listener = ChangeNotificationListener("config changes", self.process, _log)

    async def start(self) -> None:
        """Apply everything that is configured, then follow the changes."""
        await self.apply_all()
        await self.process()
        self._listener.start()

    async def stop(self) -> None:
        """Stop following."""
        await self._listener.stop()

    async def apply_all(self) -> None:
        """Apply the configs of every entity of every type.

        Changes wait meanwhile: otherwise the configs read here might replace newer ones. The
        configs of entities that no longer have any are removed too: their notifications may have
        been created and deleted while this broker had no session.
        """
        async with self._apply_lock:
            for entity_type in CONFIG_TYPES:
                found = await self._store.configs.get_all(entity_type)
                for number, chunk in enumerate(chunks(list(found))):
                    if number:
                        await asyncio.sleep(0)  # there may be thousands of topics
                    for name in chunk:
                        self._apply_one(entity_type, name, found[name])
                for name in sorted(self._configured_names.get(entity_type, set()) - found.keys()):
                    await self._apply_stored(ConfigChange(entity_type, name))

    async def process(self) -> None:
        """Apply the changes newer than the last one seen, and set the watch for the next."""
        sequences = await self._apply_new(self._listener.on_watch)
        await self._store.configs.purge_changes(sequences, self._clock.time_ms())

    async def catch_up(
        self,
        topics_without_replica: Sequence[str] = (),
        spend: Callable[[int], Awaitable[None]] | None = None,
    ) -> Mapping[str, Mapping[str, str]]:
        """Apply the changes that any broker made before this call, so that a later response
        includes them. Returns the configs of `topics_without_replica`, which have no replica on
        this broker.

        Kafka reads the entity's znode for each response. Here responses come from the cache, after
        this update. Only brokers with a replica of a topic get the configs with which it was
        created, so those of other topics are read. If ZooKeeper does not respond within 5 s, the
        cached configs are used.
        """
        try:
            async with asyncio.timeout(_CATCH_UP_LIMIT_S):
                await self._apply_new()
                return await self._store.configs.get_each("topics", topics_without_replica, spend)
        except (KafkapyError, TimeoutError) as error:
            _log.warning("Answering with configs that may be old: %s", error or "no ZooKeeper")
            return {}

    async def _apply_new(self, watch: Watch | None = None) -> list[int]:
        """Apply the changes newer than the last one applied. Returns the sequence numbers of all
        notifications.
        """
        # Without the lock, concurrent calls would apply the same change. The second call must not
        # return before the first has applied it.
        async with self._apply_lock:
            sequences = await self._store.configs.changes(watch)
            for sequence in sequences:
                if sequence > self._last_executed:
                    await self._apply_change(sequence)
                    self._last_executed = sequence
        return sequences

    async def _apply_change(self, sequence: int) -> None:
        try:
            found = await self._store.configs.change(sequence)
            if found is None:
                return
        except ZnodeError as error:
            _log.error("Ignoring a config change: %s", error)
            return
        await self._apply_stored(found[0])

    async def _apply_stored(self, change: ConfigChange) -> None:
        try:
            configs = await self._store.configs.get(*change)
        except ZnodeError as error:
            _log.error("Ignoring a config change: %s", error)
            return
        self._apply_one(*change, configs)

    def _apply_one(self, entity_type: str, name: str, configs: Mapping[str, str]) -> None:
        if entity_type != "topics":  # a topic's configs end with the topic
            names = self._configured_names.setdefault(entity_type, set())
            (names.add if configs else names.discard)(name)
        try:
            self._apply(entity_type, name, configs)
        except ConfigError as error:
            _log.error("Cannot apply the configs of %s '%s': %s", entity_type, name, error)
