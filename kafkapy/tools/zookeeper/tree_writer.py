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

from kafkapy.tools.zookeeper.tree_reader import BATCH, TreeError, batches, read_tree
from kafkapy.tools.zookeeper.znode_file import ZnodeRow
from kafkapy.zk.embedded.znode_tree import OPEN_TO_ALL, AccessList

VERSION_MAX: Final = 100_000
"""Higher versions are not kept, because each version takes one write."""

_OPS: Final = 500
_BYTES: Final = 400_000  # of a multi; jute.maxbuffer is 1 MB
_NAME: Final = "kafkapy-import"
_ALL: Final = 31
# The errors of a failed multi's other operations.
_NOT_THE_CAUSE: Final = (RolledBackError, RuntimeInconsistency)


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
        client.add_auth("digest", f"{_NAME}:{password}")
        self._own = (_ALL, "digest", make_digest_acl_credential(_NAME, password))

    def write(self) -> None:
        """Write the nodes, compare them with the wanted nodes, then set their ACLs.

        Raises:
            TreeError: the server refuses a node, or a node differs from what was written.
            KazooException: the connection is lost.
        """
        self._commit(self._nodes())
        found = {row.path: row for row in read_tree(self._client).rows}
        self._commit(self._children_to_count(found))
        self._verify()
        self._set_acls()

    def not_kept(self) -> list[str]:
        """The paths of the nodes whose version is not restored, because it is too high."""
        return [row.path for row in self._wanted if _version(row) != row.version]

    def _nodes(self) -> Iterator[Create | SetData]:
        for row in self._wanted:
            path, have = absolute(self._client, row.path), self._existing.get(row.path)
            if have is None:
                data = None if _version(row) else row.data
                yield Create(path, data, _kazoo(self._made_acl(row)), 0)
                writes = _version(row)
            else:
                writes = max(_version(row) - have.version, int(have.data != row.data))
            for left in reversed(range(writes)):
                yield SetData(path, None if left else row.data, -1)

    def _children_to_count(self, found: Mapping[str, ZnodeRow]) -> Iterator[Create | Delete]:
        for row in self._wanted:
            if row.path in found:
                path = f"{absolute(self._client, row.path).rstrip('/')}/{_NAME}"
                for _ in range(row.created - found[row.path].created):
                    yield Create(path, None, _kazoo((self._own,)), 0)
                    yield Delete(path, -1)

    def _verify(self) -> None:
        found = {row.path: row for row in read_tree(self._client).rows}
        for row in self._wanted:
            there = found.get(row.path)
            if there is None:
                raise TreeError(f"{row.path} is not there after the import")
            have = self._existing.get(row.path)
            if have is None:
                made = row._replace(version=_version(row), acl=self._made_acl(row))
            else:  # its version and sequence number may be higher, and cannot be lowered
                made = there._replace(data=row.data, acl=have.acl)
            if made != there:
                raise TreeError(f"{row.path} is not as in the file after the import")

    def _set_acls(self) -> None:
        rows = [row for row in self._wanted if self._present_acl(row) != row.acl]
        for some in batches(rows, BATCH):
            asked = [self._client.set_acls_async(row.path, _kazoo(row.acl)) for row in some]
            for row, request in zip(some, asked, strict=True):
                try:
                    request.get()
                except (InvalidACLError, NoAuthError) as error:
                    raise _refused(row.path, error) from error

    def _present_acl(self, row: ZnodeRow) -> AccessList:
        have = self._existing.get(row.path)
        return self._made_acl(row) if have is None else have.acl

    def _made_acl(self, row: ZnodeRow) -> AccessList:
        """The ACL with which a node is created."""
        return row.acl if OPEN_TO_ALL[0] in row.acl else (*row.acl, self._own)

    def _commit(self, operations: Iterable[Any]) -> None:
        waiting: list[Any] = []
        size = 0
        for each in operations:
            length = len(each.serialize())
            if waiting and (len(waiting) >= _OPS or size + length > _BYTES):
                commit(self._client, waiting)
                waiting, size = [], 0
            waiting.append(each)
            size += length
        if waiting:
            commit(self._client, waiting)


def make_root(client: KazooClient) -> None:
    """Create the chroot of a client, and the nodes above it, if they do not exist."""
    if client.exists("/") is not None:
        return
    parts = client.chroot.strip("/").split("/")
    for count in range(1, len(parts) + 1):
        path = "/" + "/".join(parts[:count])
        # Without the CREATE right, Create fails with NoAuth even if the node exists.
        if _is_there(client, path):
            continue
        try:
            commit(client, [Create(path, None, OPEN_ACL_UNSAFE, 0)])
        except NodeExistsError:
            continue


def _is_there(client: KazooClient, path: str) -> bool:
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
            raise _refused(each.path, result)
        if isinstance(result, Exception) and not isinstance(result, _NOT_THE_CAUSE):
            raise result


def _refused(path: str, error: Exception) -> TreeError:
    if isinstance(error, NoAuthError):
        return TreeError(f"An ACL does not let this client write {path}")
    return TreeError(f"The server does not take the ACL of {path}: it lacks one of its schemes")


def _version(row: ZnodeRow) -> int:
    """The version that the import gives a node."""
    return row.version if 0 <= row.version <= VERSION_MAX else 0


def _kazoo(acl: AccessList) -> list[ACL]:
    return [ACL(perms, Id(scheme, name)) for perms, scheme, name in acl]
