"""Reads a whole tree of znodes from a ZooKeeper with kazoo.

ZooKeeper's own nodes below /zookeeper are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError, NoNodeError

from kafkapy.admin.batches import batches
from kafkapy.common.errors import KafkapyError
from kafkapy.tools.zookeeper.znode_file import TreeSnapshot, ZnodeRow

BATCH: Final = 200
"""The number of nodes whose requests are in flight at a time."""

_INT: Final = 1 << 32
_CONTAINER: Final = -(1 << 63)
_TTL: Final = 0xFF


class TreeError(KafkapyError):
    """A tree cannot be read or written."""


def read_tree(client: KazooClient) -> TreeSnapshot:
    """All nodes from the client's chroot on. Nodes that are deleted meanwhile may be missing.

    Raises:
        TreeError: the chroot does not exist, or the ACL of a node forbids to read it.
        KazooException: the connection is lost.
    """
    found = TreeSnapshot([], [])
    level = ["/"]
    while level:
        children: list[str] = []
        for paths in batches(level, BATCH):
            children += _read_nodes(client, paths, found)
        level = children
    if not found.rows:
        raise TreeError(f"There is no znode {client.chroot or '/'}")
    found.rows.sort(key=lambda row: row.path)
    found.ephemerals.sort()
    return found


def children_created(stat: Any) -> int:
    """The number of children ever created. `cversion` counts creations and deletions together."""
    count: int = (stat.cversion + stat.numChildren) % _INT // 2
    return count


def _read_nodes(client: KazooClient, paths: Sequence[str], found: TreeSnapshot) -> list[str]:
    """Read some nodes into `found`. Returns the paths of their children."""
    pending = [
        (client.get_async(path), client.get_acls_async(path), client.get_children_async(path))
        for path in paths
    ]
    children: list[str] = []
    for path, requests in zip(paths, pending, strict=True):
        try:
            (data, stat), (acl, _), names = (request.get() for request in requests)
        except NoNodeError:
            continue
        except NoAuthError as error:
            raise TreeError(f"The ACL of {path} does not let this client read the znode") from error
        if _is_ephemeral(stat.ephemeralOwner):
            found.ephemerals.append(path)
            continue
        entries = tuple((each.perms, each.id.scheme, each.id.id) for each in acl)
        if any(scheme == "digest" and name.endswith(":x") for _, scheme, name in entries):
            raise TreeError(f"The ACL of {path} does not let this client read the ACL")
        found.rows.append(ZnodeRow(path, data, stat.version, children_created(stat), entries))
        own = "zookeeper" if path == "/" and not client.chroot else None
        children += [f"{path.rstrip('/')}/{name}" for name in names if name != own]
    return children


def _is_ephemeral(owner: int) -> bool:
    """Whether `owner` is a session id. Containers and TTL nodes have special values as owner."""
    return owner not in (0, _CONTAINER) and owner >> 56 & 0xFF != _TTL
