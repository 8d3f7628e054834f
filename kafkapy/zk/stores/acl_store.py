"""Access control entries and their change notifications in ZooKeeper (`ZkAclStore`).

Literal names are below `/kafka-acl`, prefixes below `/kafka-acl-extended/prefixed`; each of the two
has change notifications of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

import orjson

from kafkapy.common.errors import KafkapyError
from kafkapy.security.acls import (
    AccessControlEntry,
    Operation,
    PatternType,
    Permission,
    ResourceKind,
    ResourcePattern,
)
from kafkapy.zk.embedded.znode_tree import parent_of
from kafkapy.zk.stores import paths
from kafkapy.zk.stores.change_notifications import purge, sequences
from kafkapy.zk.stores.fencing import ensure_path
from kafkapy.zk.stores.znodes import ZnodeError
from kafkapy.zk.zookeeper import (
    BadVersion,
    Create,
    CreateMode,
    Delete,
    NodeExists,
    NoNode,
    Op,
    SetData,
    Watch,
    ZooKeeper,
)

UPDATE_ATTEMPTS_MAX: Final = 11

_KINDS: Final = {kind: paths.java_name(kind.name) for kind in ResourceKind if kind > 1}
_KINDS_BY_NAME: Final = {name: kind for kind, name in _KINDS.items()}
_OPERATIONS: Final = {each: paths.java_name(each.name) for each in Operation if each > 1}
_OPERATIONS_BY_NAME: Final = {name: each for each, name in _OPERATIONS.items()}
_PERMISSIONS: Final = {Permission.ALLOW: "Allow", Permission.DENY: "Deny"}
_PERMISSIONS_BY_NAME: Final = {name: each for each, name in _PERMISSIONS.items()}
_STORED_PATTERNS: Final = (PatternType.LITERAL, PatternType.PREFIXED)

Entries = frozenset[AccessControlEntry]


class UpdateFailed(KafkapyError):
    """Concurrent changes of a resource's entries made every attempt to update them fail."""


class AclChange(NamedTuple):
    """A notification: its folder (of `ACL_CHANGE_FOLDERS`) and its sequence number."""

    folder: str
    sequence: int

    @property
    def path(self) -> str:
        """The path of the notification."""
        return f"{self.folder}/{paths.ACL_CHANGE_PREFIX}{self.sequence:010d}"


class AclStore:
    """The entries of all resources."""

    def __init__(self, zk: ZooKeeper) -> None:
        self._zk = zk

    async def create_paths(self) -> None:
        """Create the nodes that a broker with an authorizer needs."""
        for pattern in _STORED_PATTERNS:
            for kind in _KINDS.values():
                await ensure_path(self._zk, f"{_root(pattern)}/{kind}")
        for folder in paths.ACL_CHANGE_FOLDERS:
            await ensure_path(self._zk, folder)

    async def get_all(self) -> dict[ResourcePattern, Entries | ZnodeError]:
        """The entries of every resource with a node, with an error in place of unreadable ones."""
        found: dict[ResourcePattern, Entries | ZnodeError] = {}
        for pattern in _STORED_PATTERNS:
            for kind, folder in _KINDS.items():
                for name in await self._children(f"{_root(pattern)}/{folder}"):
                    resource = ResourcePattern(kind, name, pattern)
                    try:
                        found[resource] = await self.get(resource)
                    except ZnodeError as error:
                        found[resource] = error
        return found

    async def get(self, resource: ResourcePattern) -> Entries:
        """The entries of one resource."""
        return (await self._get_versioned(resource))[0]

    async def _get_versioned(self, resource: ResourcePattern) -> tuple[Entries, int | None]:
        path = _path(resource)
        try:
            node = await self._zk.get(path)
        except NoNode:
            return frozenset(), None
        return decode_entries(path, node.data), node.stat.version

    async def update(
        self, resource: ResourcePattern, change: Callable[[Entries], Entries]
    ) -> Entries:
        """Replace a resource's entries with the result of `change`. Returns the new entries.

        Notifies every broker, unless nothing changed.

        Raises:
            UpdateFailed: other changes interfered with each attempt.
        """
        for _ in range(UPDATE_ATTEMPTS_MAX):
            old, version = await self._get_versioned(resource)
            new = change(old)
            if new == old:
                return new
            if await self._write(resource, new, version):
                return new
        raise UpdateFailed(
            f"Failed to update ACLs for {resource} after trying a maximum of"
            f" {UPDATE_ATTEMPTS_MAX} times",
        )

    async def _write(
        self, resource: ResourcePattern, entries: Entries, version: int | None
    ) -> bool:
        """Write the entries and a notification, unless the entries changed since `version`.

        This is one transaction. With two, a broker that ends between them would notify no broker,
        and the next attempt would not either: it would find the entries unchanged. After a lost
        answer the write is sent again, and refused because the first attempt changed the version.
        """
        path, data = _path(resource), encode_entries(entries)
        next_version = 0 if version is None else version + 1
        change: Op
        if version is None:
            change = Create(path, data)
        elif entries:
            change = SetData(path, data, version)
        else:
            change = Delete(path, version)
        try:
            await self._zk.multi([change, _notification(resource)])
        except (BadVersion, NoNode, NodeExists) as error:
            if isinstance(error, NoNode):
                await self._create_parents(resource)
            expected = (entries, next_version if entries else None)
            return await self._get_versioned(resource) == expected
        return True

    async def _create_parents(self, resource: ResourcePattern) -> None:
        """Create the parent nodes of a write, for a cluster in which no broker has started yet."""
        await ensure_path(self._zk, parent_of(_path(resource)))
        await ensure_path(self._zk, parent_of(_notification(resource).path))

    async def changes(self, watch: Watch | None = None) -> list[AclChange]:
        """All notifications, in the order of each folder."""
        found = []
        for folder in paths.ACL_CHANGE_FOLDERS:
            numbers = await sequences(self._zk, folder, paths.ACL_CHANGE_PREFIX, watch)
            found += [AclChange(folder, number) for number in numbers]
        return found

    async def changed_key(self, change: AclChange) -> ResourcePattern | None:
        """The resource that a notification names; None if it was purged."""
        try:
            node = await self._zk.get(change.path)
        except NoNode:
            return None
        return decode_change(change.path, node.data)

    async def purge(self, changes: Iterable[AclChange], now_ms: int) -> None:
        """Delete the notifications that are older than 15 minutes."""
        by_folder: dict[str, list[str]] = {}
        for change in changes:
            by_folder.setdefault(change.folder, []).append(change.path)
        for notifications in by_folder.values():
            await purge(self._zk, notifications, now_ms)

    async def _children(self, path: str) -> list[str]:
        try:
            return await self._zk.children(path)
        except NoNode:
            return []


def _root(pattern: PatternType) -> str:
    return paths.ACLS if pattern is PatternType.LITERAL else paths.PREFIXED_ACLS


def _path(resource: ResourcePattern) -> str:
    return f"{_root(resource.pattern)}/{_KINDS[resource.kind]}/{resource.name}"


def encode_entries(entries: Entries) -> bytes:
    """`/kafka-acl/<type>/<name>`, version 1."""
    rows = [
        {
            "principal": entry.principal,
            "permissionType": _PERMISSIONS[entry.permission],
            "operation": _OPERATIONS[entry.operation],
            "host": entry.host,
        }
        for entry in sorted(entries)
    ]
    return orjson.dumps({"version": 1, "acls": rows})


def decode_entries(path: str, data: bytes) -> Entries:
    """The entries of one resource; an empty node has none."""
    if not data:
        return frozenset()
    try:
        node = orjson.loads(data)
        return frozenset(
            AccessControlEntry(
                str(row["principal"]),
                str(row["host"]),
                _OPERATIONS_BY_NAME[row["operation"]],
                _PERMISSIONS_BY_NAME[row["permissionType"]],
            )
            for row in node["acls"]
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ZnodeError(path, repr(error)) from error


def _notification(resource: ResourcePattern) -> Create:
    """The notification of a change: JSON for prefixes only."""
    folder, data = paths.ACL_CHANGES, f"{resource.kind.name}:{resource.name}".encode()
    if resource.pattern is not PatternType.LITERAL:
        folder = paths.EXTENDED_ACL_CHANGES
        node: dict[str, Any] = {
            "version": 1,
            "resourceType": resource.kind.name,
            "name": resource.name,
            "patternType": resource.pattern.name,
        }
        data = orjson.dumps(node)
    path = f"{folder}/{paths.ACL_CHANGE_PREFIX}"
    return Create(path, data, CreateMode.PERSISTENT_SEQUENTIAL)


def decode_change(path: str, data: bytes) -> ResourcePattern:
    """The resource named by a notification of either folder."""
    try:
        if not path.startswith(f"{paths.EXTENDED_ACL_CHANGES}/"):
            kind, _, name = data.decode().partition(":")
            return ResourcePattern(_kind(kind), name, PatternType.LITERAL)
        node = orjson.loads(data)
        pattern = PatternType[node["patternType"]]
        if pattern not in _STORED_PATTERNS:
            raise ValueError(f"{pattern.name} is the pattern of no resource")
        return ResourcePattern(_kind(node["resourceType"]), str(node["name"]), pattern)
    except (KeyError, TypeError, ValueError) as error:
        raise ZnodeError(path, repr(error)) from error


def _kind(text: str) -> ResourceKind:
    """The resource type in a notification: the enum's name, or the folder's from old brokers."""
    kind = _KINDS_BY_NAME[text] if text in _KINDS_BY_NAME else ResourceKind[text]
    if kind not in _KINDS:
        raise ValueError(f"{text} is the type of no resource")
    return kind
