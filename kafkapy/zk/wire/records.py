"""Records that requests and replies share."""

from __future__ import annotations

from typing import Final, NamedTuple

from kafkapy.zk.wire.jute import INT, STRING, packed, record, vector


class Stat(NamedTuple):
    """Statistics of a znode, as clients see them."""

    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    data_length: int
    num_children: int
    pzxid: int


class Acl(NamedTuple):
    """One entry of an access control list."""

    perms: int
    scheme: str
    id: str


class ClientInfo(NamedTuple):
    """An identity of a connection, in the reply to `whoAmI`."""

    scheme: str
    user: str


STAT: Final = packed(Stat, ">qqqqiiiqiiq")
ACL: Final = record(Acl, INT, STRING, STRING)
ACLS: Final = vector(ACL)
STRINGS: Final = vector(STRING)
CLIENT_INFOS: Final = vector(record(ClientInfo, STRING, STRING))
