"""Access control: the identities of a connection, and the permissions in a node's ACL."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Final

from kafkapy.zk.embedded.znode_tree import AccessList
from kafkapy.zk.service.refusals import Refused
from kafkapy.zk.wire.codes import ErrorCode
from kafkapy.zk.wire.records import Acl

Identity = tuple[str, str]
"""A scheme, and the client's identity in it."""

SUPER: Final[Identity] = ("super", "")
"""The identity that has all permissions."""

READ_ONLY: Final[AccessList] = ((1, "world", "anyone"),)

BASE_SCHEMES: Final = frozenset(("world", "digest", "ip"))
SASL: Final = "sasl"
X509: Final = "x509"

ENTRIES_MAX: Final = 200
"""The number of entries of an ACL. Each read and write of the node checks them; a request of 1 MB
could store 30,000."""

_NAME_CHARS_MAX: Final = 1024
"""The length of an entry's name. No client has a longer identity."""

_DECISIONS_MAX: Final = 256
_ANYONE: Final[Identity] = ("world", "anyone")
_IP: Final = "ip"

_AUTHENTICATED: Final = ("digest", SASL, X509)
"""The schemes that authenticate a client."""

# As `KerberosName`: any text without @ is a name.
_PRINCIPAL: Final = re.compile("[^/@]*(/[^/@]*)?@[^/@]*")


def is_allowed(acl: AccessList, wanted: int, identities: Collection[Identity]) -> bool:
    """Whether an entry grants one of the wanted permissions to one of the identities."""
    return _is_allowed(acl, wanted, frozenset(identities))


@lru_cache(_DECISIONS_MAX)
def _is_allowed(acl: AccessList, wanted: int, identities: frozenset[Identity]) -> bool:
    addresses = [name for scheme, name in identities if scheme == _IP]
    return SUPER in identities or any(
        perms & wanted
        and (
            (scheme, name) in identities
            or (scheme, name) == _ANYONE
            or (scheme == _IP and any(_contains(name, each) for each in addresses))
        )
        for perms, scheme, name in acl
    )


def check(acl: AccessList, wanted: int, identities: Collection[Identity]) -> None:
    """Check that an entry grants one of the wanted permissions.

    Raises:
        Refused: NOAUTH.
    """
    if not is_allowed(acl, wanted, identities):
        raise Refused(ErrorCode.NOAUTH)


def stored_acl(
    acl: Iterable[Acl],
    identities: Collection[Identity],
    schemes: Collection[str] = BASE_SCHEMES,
) -> AccessList:
    """The ACL to store for a client's ACL: `auth` entries become the client's identities.

    Raises:
        Refused: INVALIDACL: the ACL is empty or has more than `ENTRIES_MAX` entries, or an entry's
            name cannot match any client, or its scheme is not in `schemes`.
    """
    entries: list[tuple[int, str, str]] = []
    for perms, scheme, name in dict.fromkeys(acl):
        if len(entries) >= ENTRIES_MAX:
            raise Refused(ErrorCode.INVALIDACL)
        if scheme == "auth":
            own_entries = [(perms, *each) for each in identities if each[0] in _AUTHENTICATED]
            if not own_entries:
                raise Refused(ErrorCode.INVALIDACL)
            entries += own_entries
        elif scheme in schemes and _is_valid_identity(scheme, name):
            entries.append((perms, scheme, name))
        else:
            raise Refused(ErrorCode.INVALIDACL)
    if not 0 < len(entries) <= ENTRIES_MAX:
        raise Refused(ErrorCode.INVALIDACL)
    return tuple(entries)


def acl_without_digests(acl: AccessList) -> tuple[Acl, ...]:
    """The ACL without password digests, for clients that may read but not administer the node."""
    return tuple(
        Acl(perms, scheme, f"{name.partition(':')[0]}:x" if scheme == "digest" else name)
        for perms, scheme, name in acl
    )


def identity_of(scheme: str, auth: bytes, address: str) -> Identity | None:
    """The identity that `addauth` adds; None if the scheme is not served."""
    if scheme == "digest":
        text = auth.decode(errors="replace")
        # ZooKeeper uses SHA-1, and the digests in ACLs must match.
        digest = hashlib.sha1(text.encode(), usedforsecurity=False).digest()
        return "digest", f"{text.partition(':')[0]}:{base64.b64encode(digest).decode()}"
    return ("ip", address) if scheme == "ip" else None


def user_of(identity: Identity) -> str:
    """The user name in the reply to `whoAmI`."""
    scheme, name = identity
    return name.partition(":")[0] if scheme == "digest" else name


def _is_valid_identity(scheme: str, name: str) -> bool:
    if len(name) > _NAME_CHARS_MAX:
        return False
    match scheme:
        case "world":
            return name == "anyone"
        case "digest":
            return len(name.rstrip(":").split(":")) == 2
        case "ip":
            return _network(name) is not None
        case "sasl":
            return "@" not in name or _PRINCIPAL.fullmatch(name) is not None
        case _:  # x509: a distinguished name
            return "=" in name


def _contains(name: str, address: str) -> bool:
    """Whether an address is in the network of an entry."""
    network = _network(name)
    try:
        return network is not None and ipaddress.ip_address(address) in network
    except ValueError:
        return False


def _network(name: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """The network of an address with an optional prefix length. None if the text is invalid."""
    _, slash, bits = name.partition("/")
    if slash and not (bits.isascii() and bits.isdecimal()):
        return None
    try:
        return ipaddress.ip_network(name, strict=False)
    except ValueError:
        return None
