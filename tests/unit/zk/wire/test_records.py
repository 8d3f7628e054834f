"""Stats and access control lists, byte for byte as kazoo reads them."""

from __future__ import annotations

from kazoo.protocol.serialization import read_acl, stat_struct

from kafkapy.zk.wire.jute import encode
from kafkapy.zk.wire.records import ACL, ACLS, STAT, Acl, Stat


def test_a_stat_is_what_kazoo_reads() -> None:
    stat = Stat(*range(1, 12))
    assert stat_struct.unpack(encode(STAT, stat)) == tuple(stat)


def test_an_acl_is_what_kazoo_reads() -> None:
    entry = Acl(31, "digest", "user:hash")
    found, end = read_acl(encode(ACL, entry), 0)
    assert (found.perms, found.id.scheme, found.id.id) == entry
    assert end == len(encode(ACL, entry))
    assert encode(ACLS, (entry,)) == b"\0\0\0\1" + encode(ACL, entry)
