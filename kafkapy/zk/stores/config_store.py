"""Entity configs and their change notifications in ZooKeeper.

Entity types are `paths.CONFIG_TYPES`; the default entity is `<default>`. Names are passed sanitized
(`paths.sanitize`), except those of topics and brokers.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeVar

from kafkapy.zk.embedded.znode_tree import parent_of
from kafkapy.zk.stores import change_notifications, paths
from kafkapy.zk.stores.fencing import ControllerMoved, create_recursive, ensure_path
from kafkapy.zk.stores.znodes import (
    ConfigChange,
    ZnodeError,
    decode_config,
    decode_config_change,
    encode_config,
    encode_config_change,
)
from kafkapy.zk.zookeeper import (
    ANY_VERSION,
    BadVersion,
    Check,
    Create,
    CreateMode,
    Delete,
    Get,
    NodeExists,
    NoNode,
    NotEmpty,
    Op,
    SetData,
    Watch,
    Znode,
    ZooKeeper,
    ZooKeeperError,
)

_log = logging.getLogger("kafka.zk.KafkaZkClient")
T = TypeVar("T")

_BATCH_SIZE: Final = 100
_READ_US: Final = 20
"""The cost of reading one entity."""
_MISSING: Final = -2
"""The version of a node that does not exist."""
# Entity types whose node Kafka deletes with its last config.
_DELETED_WHEN_EMPTY: Final = ("users", "clients", "ips", "client-metrics", "groups")


async def until_unchanged(attempt: Callable[[], Awaitable[T]]) -> T:
    """Repeat `attempt` until it does not raise BadVersion. It reads configs with their version, and
    writes them with that version.
    """
    while True:
        with contextlib.suppress(BadVersion):
            return await attempt()


class ConfigStore:
    """Configs of all entities."""

    def __init__(self, zk: ZooKeeper) -> None:
        self._zk = zk

    async def get(self, entity_type: str, entity_name: str) -> dict[str, str]:
        """An entity's own configs; empty if it has none."""
        return (await self.get_versioned(entity_type, entity_name))[0]

    async def get_versioned(self, entity_type: str, entity_name: str) -> tuple[dict[str, str], int]:
        """An entity's own configs, with the version to pass to `set`."""
        path = paths.config(entity_type, entity_name)
        try:
            node = await self._zk.get(path)
        except NoNode:
            return {}, _MISSING
        return decode_config(path, node.data), node.stat.version

    async def get_all(
        self, entity_type: str, on_cost: Callable[[int], Awaitable[None]] | None = None
    ) -> dict[str, dict[str, str]]:
        """The configs of every entity of a type, by name, sorted.

        A user's clients appear as `user/clients/client` too. An entity with an unreadable znode is
        logged and left out. `on_cost` is awaited from time to time with the cost since its last
        call, in us, so that other tasks run while thousands of entities are read.
        """
        return await self.get_each(entity_type, await self._names(entity_type, on_cost), on_cost)

    async def get_each(
        self,
        entity_type: str,
        names: Sequence[str],
        on_cost: Callable[[int], Awaitable[None]] | None = None,
    ) -> dict[str, dict[str, str]]:
        """As `get_all`, for the named entities. An entity without a znode is left out."""
        found = {}
        for start in range(0, len(names), _BATCH_SIZE):
            batch = names[start : start + _BATCH_SIZE]
            requests = [Get(paths.config(entity_type, name)) for name in batch]
            answers = await self._zk.pipeline(requests)
            for request, name, answer in zip(requests, batch, answers, strict=True):
                if isinstance(answer, Znode):
                    try:
                        found[name] = decode_config(request.path, answer.data)
                    except ZnodeError as error:
                        _log.error("Configs are left alone: %s", error)
                elif not isinstance(answer, NoNode) and isinstance(answer, ZooKeeperError):
                    raise answer
            if on_cost is not None:
                await on_cost(_READ_US * len(batch))
        return found

    async def set_before_start(self, broker_id: str, configs: Mapping[str, str]) -> None:
        """Replace the configs of a broker that does not run yet. No notification is needed, and
        there may be no controller.
        """
        path, data = paths.config("brokers", broker_id), encode_config(configs)
        try:
            await self._zk.set(path, data)
        except NoNode:
            await create_recursive(self._zk, path, data)

    async def set(
        self,
        entity_type: str,
        entity_name: str,
        configs: Mapping[str, str],
        version: int = ANY_VERSION,
        *,
        needs_controller: bool = True,
    ) -> None:
        """Replace an entity's configs, if the cluster has a controller, and notify every broker.
        Deletes entities without configs, except topics and brokers.

        This is one transaction. Kafka's brokers use two: if a broker ends between them, the other
        brokers do not apply the new configs.

        `version` is the version of the configs that `configs` replaces. Kafka overwrites configs
        that another broker has written meanwhile.

        Tools need no controller (`enableEntityConfigControllerCheck` of Kafka): they write the
        credentials of a cluster's first broker.

        Raises:
            ControllerMoved: there is no controller, or it changed meanwhile. Retry then.
            BadVersion: the configs were changed since `version`. Read them again.
        """
        checks: list[Op] = [await self._controller()] if needs_controller else []
        notification = _notification(ConfigChange(entity_type, entity_name))
        path, data = paths.config(entity_type, entity_name), encode_config(configs)
        if (
            not configs
            and entity_type in _DELETED_WHEN_EMPTY
            and await self._delete_entity(entity_type, entity_name, checks, notification, version)
        ):
            return
        exists = version != _MISSING
        while True:
            change = SetData(path, data, version) if exists else Create(path, data)
            try:
                await self._apply([*checks, change, notification])
                return
            except (BadVersion, NoNode, NodeExists) as error:
                if isinstance(error, NoNode) and not exists:
                    await ensure_path(self._zk, parent_of(path))
                elif version == ANY_VERSION:
                    exists = not exists  # another broker has just deleted or created it
                else:
                    await self._check_already_applied(
                        path, data, 0 if version == _MISSING else version + 1
                    )
                    return

    async def _apply(self, ops: Sequence[Op]) -> None:
        """Apply a transaction that may check the controller, and may notify."""
        try:
            await self._zk.multi(ops)
        except (BadVersion, NoNode) as error:
            if error.path == paths.CONTROLLER:
                raise ControllerMoved("the controller changed meanwhile") from error
            if not error.path.startswith(paths.CONFIG_CHANGES):
                raise
            await ensure_path(self._zk, paths.CONFIG_CHANGES)  # no broker has started yet
            await self._apply(ops)

    async def replacement_ops(
        self, entity_type: str, entity_name: str, configs: Mapping[str, str]
    ) -> list[Op]:
        """Operations that replace an entity's configs, for a transaction. They fail if the configs
        change meanwhile.

        Raises:
            ControllerMoved: there is no controller.
        """
        check = await self._controller()
        path, data = paths.config(entity_type, entity_name), encode_config(configs)
        stat = await self._zk.exists(path)
        if stat is None:
            return [check, Create(path, data)]
        return [check, SetData(path, data, stat.version)]

    async def _check_already_applied(self, path: str, data: bytes, version: int) -> None:
        """Check whether a refused write was applied by an earlier attempt. After a lost answer a
        write is sent again, and refused because the first attempt changed the version.

        Raises:
            BadVersion: it was not applied.
        """
        try:
            node = await self._zk.get(path)
        except NoNode:
            raise BadVersion(path) from None
        if (node.data, node.stat.version) != (data, version):
            raise BadVersion(path)

    async def _controller(self) -> Check:
        """The operation that checks that the controller is unchanged. Raises ControllerMoved: there
        is none.
        """
        stat = await self._zk.exists(paths.CONTROLLER)
        if stat is None:
            raise ControllerMoved("there is no controller: configs cannot be changed now")
        return Check(paths.CONTROLLER, stat.version)

    async def _delete_entity(
        self, entity_type: str, name: str, checks: list[Op], notification: Op, version: int
    ) -> bool:
        """Delete an entity's node, if it has no children, and notify. With a user's last client,
        also deletes the parent node of clients and, if the user has no configs, the user's node.
        """
        ops = [*checks, notification]
        if not await self._delete(paths.config(entity_type, name), ops, version):
            return False
        user, is_client, _ = name.partition("/clients/")
        if entity_type == "users" and is_client:
            is_deleted = await self._delete(paths.config("users", f"{user}/clients"), checks)
            configs, version = await self.get_versioned("users", user)
            if is_deleted and not configs:
                with contextlib.suppress(BadVersion):  # another broker has just set configs
                    await self._delete(paths.config("users", user), checks, version)
        return True

    async def _delete(self, path: str, ops: list[Op], version: int = ANY_VERSION) -> bool:
        """Delete a node, with other operations. Returns False if it has children. Raises
        BadVersion.
        """
        if version == _MISSING:
            return True
        try:
            with contextlib.suppress(NoNode):
                await self._apply([*ops, Delete(path, version)])
        except NotEmpty:
            return False
        return True

    async def changes(self, watch: Watch | None = None) -> list[int]:
        """The sequence numbers of all notifications, ascending."""
        return await change_notifications.sequences(
            self._zk, paths.CONFIG_CHANGES, paths.CONFIG_CHANGE_PREFIX, watch
        )

    async def change(self, sequence: int) -> tuple[ConfigChange, int] | None:
        """One notification with its creation time (ctime, ms); None if it was purged."""
        path = _change_path(sequence)
        try:
            node = await self._zk.get(path)
        except NoNode:
            return None
        return decode_config_change(path, node.data), node.stat.ctime_ms

    async def purge_changes(self, sequences: list[int], now_ms: int) -> None:
        """Delete the notifications that are older than 15 minutes."""
        await change_notifications.purge(self._zk, map(_change_path, sequences), now_ms)

    async def _names(
        self, entity_type: str, on_cost: Callable[[int], Awaitable[None]] | None
    ) -> list[str]:
        names = await self._children(f"{paths.CONFIG}/{entity_type}")
        if entity_type != "users":
            return names
        nested = list(names)
        for user in names:
            clients = await self._children(f"{paths.CONFIG}/users/{user}/clients")
            nested += [f"{user}/clients/{client}" for client in clients]
            if on_cost is not None:
                await on_cost(_READ_US)
        return nested

    async def _children(self, path: str) -> list[str]:
        try:
            return await self._zk.children(path)
        except NoNode:
            return []


def _notification(change: ConfigChange) -> Create:
    """The notification that makes every broker read the entity's configs again."""
    path = f"{paths.CONFIG_CHANGES}/{paths.CONFIG_CHANGE_PREFIX}"
    return Create(path, encode_config_change(change), CreateMode.PERSISTENT_SEQUENTIAL)


def _change_path(sequence: int) -> str:
    return f"{paths.CONFIG_CHANGES}/{paths.CONFIG_CHANGE_PREFIX}{sequence:010d}"
