"""ACLs of znodes when `zookeeper.set.acl` is on (`kafka.zk.ZkData.defaultAcls`)."""

from __future__ import annotations

from typing import Final, NamedTuple

READ: Final = 1
ALL: Final = 31

_OPEN_PATH: Final = "/consumers"
_SENSITIVE_PATHS: Final = ("/config/users", "/config/brokers", "/delegation_token/tokens")


class Acl(NamedTuple):
    """Permission bits for one ZooKeeper identity."""

    permissions: int
    scheme: str
    identity: str


WORLD_ALL: Final = Acl(ALL, "world", "anyone")
WORLD_READ: Final = Acl(READ, "world", "anyone")
CREATOR_ALL: Final = Acl(ALL, "auth", "")


def default_acls(path: str, secure: bool) -> tuple[Acl, ...]:
    """The ACL of a node to create at `path` (without the chroot).

    Only its creator may write a secure node, and all may read it. Only its creator may read a node
    with secrets. Old consumers write below `/consumers`, so that path stays open.
    """
    if not secure or _is_below(path, _OPEN_PATH):
        return (WORLD_ALL,)
    if any(_is_below(path, sensitive) for sensitive in _SENSITIVE_PATHS):
        return (CREATOR_ALL,)
    return (CREATOR_ALL, WORLD_READ)


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root}/")
