"""Writes a whole tree of znodes to a ZooKeeper with kazoo.

ZooKeeper's protocol cannot set a version or a sequence number, so both are raised step by step. A
node is written until it has its version. A child is created and deleted until the next sequential
child gets the right number.

The import must write nodes whatever their ACLs allow. So it creates nodes with an ACL entry for
itself, and sets the ACLs of the file at the end. Other clients never have more rights than in the
file.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import (
    InvalidACLError,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    RolledBackError,
    RuntimeInconsistency,
)
from kazoo.protocol.serialization import CheckVersion, Create, Delete, SetData
from kazoo.security import ACL, OPEN_ACL_UNSAFE, Id, make_digest_acl_credential

from kafkapy.admin.batches import batches
from kafkapy.tools.zookeeper.tree_reader import BATCH, TreeError, read_tree
from kafkapy.tools.zookeeper.znode_file import ZnodeRow
from kafkapy.zk.embedded.znode_tree import OPEN_TO_ALL, AccessList

VERSION_MAX: Final = 100_000
"""Higher versions are not kept, because each version takes one write."""

_OPERATIONS_MAX: Final = 500
_MULTI_BYTES_MAX: Final = 400_000  # of a multi; jute.maxbuffer is 1 MB
_IMPORT_NAME: Final = "kafkapy-import"
_ALL_PERMISSIONS: Final = 31
# The errors of a failed multi's other operations.
_SECONDARY_ERRORS: Final = (RolledBackError, RuntimeInconsistency)


class TreeWriter:
    """Writes the `wanted` nodes over the `existing` nodes of a tree, whose root must exist."""

    def __init__(
        self, client: KazooClient, wanted: Sequence[ZnodeRow], existing: Mapping[str, ZnodeRow]
    ) -> None:
        """
        Raises:
            KazooException: the connection is lost, or the server has no digest scheme.
        """
        self._client = client
        self._wanted = wanted
        self._existing = existing
        password = secrets.token_hex(16)
        client.add_auth("digest", f"{_IMPORT_NAME}:{password}")
        self._import_entry = (
            _ALL_PERMISSIONS,
            "digest",
            make_digest_acl_credential(_IMPORT_NAME, password),
        )

    def write(self) -> None:
        """Write the nodes, compare them with the wanted nodes, then set their ACLs.

        Raises:
            TreeError: the server refuses a node, or a node differs from what was written.
            KazooException: the connection is lost.
        """
        self._commit(self._node_operations())
        found = {row.path: row for row in read_tree(self._client).rows}
        self._commit(self._counter_operations(found))
        self._verify()
        self._set_acls()

    def unrestored_versions(self) -> list[str]:
        """The paths of the nodes whose version is not restored, because it is too high."""
        return [row.path for row in self._wanted if _version(row) != row.version]

    def _node_operations(self) -> Iterator[Create | SetData]:
        for row in self._wanted:
            path, existing = absolute(self._client, row.path), self._existing.get(row.path)
            if existing is None:
                data = None if _version(row) else row.data
                yield Create(path, data, _kazoo_acls(self._initial_acl(row)), 0)
                writes = _version(row)
            else:
                writes = max(_version(row) - existing.version, int(existing.data != row.data))
            for remaining in reversed(range(writes)):
                yield SetData(path, None if remaining else row.data, -1)

    def _counter_operations(self, found: Mapping[str, ZnodeRow]) -> Iterator[Create | Delete]:
        for row in self._wanted:
            if row.path in found:
                path = f"{absolute(self._client, row.path).rstrip('/')}/{_IMPORT_NAME}"
                for _ in range(row.children_created - found[row.path].children_created):
                    yield Create(path, None, _kazoo_acls((self._import_entry,)), 0)
                    yield Delete(path, -1)

    def _verify(self) -> None:
        found = {row.path: row for row in read_tree(self._client).rows}
        for row in self._wanted:
            stored = found.get(row.path)
            if stored is None:
                raise TreeError(f"{row.path} is not there after the import")
            existing = self._existing.get(row.path)
            if existing is None:
                expected = row._replace(version=_version(row), acl=self._initial_acl(row))
            else:  # its version and sequence number may be higher, and cannot be lowered
                expected = stored._replace(data=row.data, acl=existing.acl)
            if expected != stored:
                raise TreeError(f"{row.path} is not as in the file after the import")

    def _set_acls(self) -> None:
        rows = [row for row in self._wanted if self._present_acl(row) != row.acl]
        for batch in batches(rows, BATCH):
            requests = [
                self._client.set_acls_async(row.path, _kazoo_acls(row.acl)) for row in batch
            ]
            for row, request in zip(batch, requests, strict=True):
                try:
                    request.get()
                except (InvalidACLError, NoAuthError) as error:
                    raise _acl_error(row.path, error) from error

    def _present_acl(self, row: ZnodeRow) -> AccessList:
        existing = self._existing.get(row.path)
        return self._initial_acl(row) if existing is None else existing.acl

    def _initial_acl(self, row: ZnodeRow) -> AccessList:
        """The ACL with which a node is created."""
        return row.acl if OPEN_TO_ALL[0] in row.acl else (*row.acl, self._import_entry)

    def _commit(self, operations: Iterable[Any]) -> None:
        batch: list[Any] = []
        size = 0
        for each in operations:
            length = len(each.serialize())
            if batch and (len(batch) >= _OPERATIONS_MAX or size + length > _MULTI_BYTES_MAX):
                commit(self._client, batch)
                batch, size = [], 0
            batch.append(each)
            size += length
        if batch:
            commit(self._client, batch)


def make_root(client: KazooClient) -> None:
    """Create the chroot of a client, and the nodes above it, if they do not exist."""
    if client.exists("/") is not None:
        return
    parts = client.chroot.strip("/").split("/")
    for count in range(1, len(parts) + 1):
        path = "/" + "/".join(parts[:count])
        # Without the CREATE right, Create fails with NoAuth even if the node exists.
        if _exists(client, path):
            continue
        try:
            commit(client, [Create(path, None, OPEN_ACL_UNSAFE, 0)])
        except NodeExistsError:
            continue


def _exists(client: KazooClient, path: str) -> bool:
    """Whether a node exists. `path` is absolute: the node may be above the chroot."""
    try:
        commit(client, [CheckVersion(path, -1)])
    except NoNodeError:
        return False
    except TreeError:  # the node exists, but may not be read
        return True
    return True


def absolute(client: KazooClient, path: str) -> str:
    """The absolute path of a path below the chroot."""
    return (client.chroot + path if path != "/" else client.chroot) or "/"


def commit(client: KazooClient, operations: Sequence[Any]) -> None:
    """Commit all operations, or none.

    Raises:
        TreeError: an ACL forbids an operation, or the server does not support an ACL's scheme.
        KazooException: another refusal, or the connection is lost.
    """
    request = client.transaction()
    # The transaction's own methods do not accept null data.
    request.operations.extend(operations)
    for each, result in zip(operations, request.commit(), strict=True):
        if isinstance(result, InvalidACLError | NoAuthError):
            raise _acl_error(each.path, result)
        if isinstance(result, Exception) and not isinstance(result, _SECONDARY_ERRORS):
            raise result


def _acl_error(path: str, error: Exception) -> TreeError:
    if isinstance(error, NoAuthError):
        return TreeError(f"An ACL does not let this client write {path}")
    return TreeError(f"The server does not support a scheme in the ACL of {path}")


def _version(row: ZnodeRow) -> int:
    """The version that the import gives a node."""
    return row.version if 0 <= row.version <= VERSION_MAX else 0


def _kazoo_acls(acl: AccessList) -> list[ACL]:
    return [ACL(perms, Id(scheme, name)) for perms, scheme, name in acl]
