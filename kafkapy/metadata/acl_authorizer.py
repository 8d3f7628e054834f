"""Authorization by ACLs, with Kafka's rules (`kafka.security.authorizer.AclAuthorizer`).

A super user may do everything. Otherwise a matching DENY refuses, then a matching ALLOW allows. If
a resource has no entries, `allow.everyone.if.no.acl.found` decides. The entries of a resource are
those of its own name, of `*` and of every prefix of its name.

A look-up does not scan the entries: it costs two dictionary reads, and one for each distinct length
of the prefixes of that kind. Of a resource that it finds, it reads only the entries that match the
principal and the host. One for any resource of a kind reads only the patterns of entries that match
the principal, the host and the operation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, product
from typing import Final

from kafkapy.common.errors import ConfigError
from kafkapy.security.acls import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AccessControlEntry,
    Operation,
    PatternType,
    Permission,
    ResourceKind,
    ResourcePattern,
)

Entries = frozenset[AccessControlEntry]
_Peer = tuple[str | None, str | None]
"""The principal and the host of an entry."""

_IMPLIED_BY: Final = {
    Operation.DESCRIBE: frozenset(
        (Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER)
    ),
    Operation.DESCRIBE_CONFIGS: frozenset((Operation.ALTER_CONFIGS,)),
}
_DECISIONS_MAX: Final = 1000
_NO_OPERATIONS: Final[frozenset[Operation]] = frozenset()


def parse_super_users(text: str) -> frozenset[str]:
    """Parse `super.users`: principals between semicolons, because certificate names have commas.

    Raises:
        ConfigError: a principal is not Type:name.
    """
    users = frozenset(user.strip() for user in text.split(";") if user.strip())
    for user in users:
        if not all(user.partition(":")[::2]):
            raise ConfigError(
                f"super.users={text}: '{user}' is not a principal: give Type:name, as User:alice,"
                " and a ; between two"
            )
    return users


class AclAuthorizer:
    """The entries in force, by resource. `update` replaces those of one resource.

    Super users never change. A decision is valid while `version` is the same.
    """

    def __init__(self, super_users: Iterable[str] = (), allow_if_none_found: bool = False) -> None:
        self._super_users = frozenset(super_users)
        self._allow_if_none_found = allow_if_none_found
        self.acls: dict[ResourcePattern, Entries] = {}
        self._by_peer: dict[ResourcePattern, dict[_Peer, list[AccessControlEntry]]] = {}
        self.version = 0
        # The number of prefixes, by kind and length.
        self._prefix_lengths: dict[ResourceKind, Counter[int]] = {}
        # The resources that have an entry (`resourceCache`).
        self._patterns: dict[tuple[ResourceKind, AccessControlEntry], set[ResourcePattern]] = {}
        # A client may have many grants which are all denied: they are compared once.
        self._decide_for_any = lru_cache(_DECISIONS_MAX)(self._decide_for_any_resource)

    def update(self, pattern: ResourcePattern, entries: Iterable[AccessControlEntry]) -> None:
        """Replace all entries of a literal name or a prefix."""
        self.version += 1
        self._decide_for_any.cache_clear()
        existed = pattern in self.acls
        new_entries = frozenset(entries)
        self._index(pattern, self.acls.get(pattern, frozenset()), new_entries)
        if new_entries:
            self.acls[pattern] = new_entries
            by_peer = self._by_peer[pattern] = {}
            for entry in new_entries:
                by_peer.setdefault((entry.principal, entry.host), []).append(entry)
        else:
            self.acls.pop(pattern, None)
            self._by_peer.pop(pattern, None)
        change = bool(new_entries) - existed
        if change and pattern.pattern is PatternType.PREFIXED:
            lengths = self._prefix_lengths.setdefault(pattern.kind, Counter())
            length = len(pattern.name or "")
            lengths[length] += change
            if not lengths[length]:
                del lengths[length]

    def _index(self, pattern: ResourcePattern, old: Entries, new: Entries) -> None:
        for entry in old - new:
            patterns = self._patterns[pattern.kind, entry]
            patterns.remove(pattern)
            if not patterns:
                del self._patterns[pattern.kind, entry]
        for entry in new - old:
            self._patterns.setdefault((pattern.kind, entry), set()).add(pattern)

    def is_allowed(
        self, principal: str, host: str, operation: Operation, kind: ResourceKind, name: str
    ) -> bool:
        """Whether `principal`, at the address `host`, may perform `operation` on a resource."""
        if principal in self._super_users:
            return True
        implying_operations = _IMPLIED_BY.get(operation, _NO_OPERATIONS)
        peers = (
            (principal, host),
            (principal, WILDCARD),
            (WILDCARD_PRINCIPAL, host),
            (WILDCARD_PRINCIPAL, WILDCARD),
        )
        is_none_found, is_granted = True, False
        for by_peer in self._entries_for(kind, name):
            is_none_found = False
            for peer in peers:
                for entry in by_peer.get(peer, ()):
                    matches_operation = entry.operation in (operation, Operation.ALL)
                    if entry.permission is Permission.DENY:
                        if matches_operation:
                            return False
                    elif matches_operation or entry.operation in implying_operations:
                        is_granted = True
        return is_granted or (is_none_found and self._allow_if_none_found)

    def is_allowed_for_any(
        self, principal: str, host: str, operation: Operation, kind: ResourceKind
    ) -> bool:
        """Whether `principal` may perform `operation` on any resource of this kind
        (`authorizeByResourceType`)."""
        return self._decide_for_any(principal, host, operation, kind)

    def _decide_for_any_resource(
        self, principal: str, host: str, operation: Operation, kind: ResourceKind
    ) -> bool:
        if principal in self._super_users:
            return True
        denied = self._patterns_for(principal, host, operation, kind, Permission.DENY)
        if _is_in(ResourcePattern(kind, WILDCARD, PatternType.LITERAL), denied):
            return False
        if self._allow_if_none_found:
            return True
        allowed = self._patterns_for(principal, host, operation, kind, Permission.ALLOW)
        return any(not _is_denied(each, denied) for each in chain.from_iterable(allowed))

    def _patterns_for(
        self,
        principal: str,
        host: str,
        operation: Operation,
        kind: ResourceKind,
        permission: Permission,
    ) -> list[set[ResourcePattern]]:
        """The patterns of a kind with a matching entry: a set for each entry that matches."""
        matching = product(
            {principal, WILDCARD_PRINCIPAL}, {host, WILDCARD}, {operation, Operation.ALL}
        )
        found = (
            self._patterns.get((kind, AccessControlEntry(*each, permission))) for each in matching
        )
        return [patterns for patterns in found if patterns is not None]

    def _entries_for(
        self, kind: ResourceKind, name: str
    ) -> Iterator[dict[_Peer, list[AccessControlEntry]]]:
        acls = self._by_peer
        for literal in (name, WILDCARD):
            entries = acls.get(ResourcePattern(kind, literal, PatternType.LITERAL))
            if entries is not None:
                yield entries
        for length in self._prefix_lengths.get(kind, ()):
            # A longer prefix would only look up the name itself again.
            if length <= len(name):
                prefix = ResourcePattern(kind, name[:length], PatternType.PREFIXED)
                entries = acls.get(prefix)
                if entries is not None:
                    yield entries


def _is_in(pattern: ResourcePattern, sets: Sequence[set[ResourcePattern]]) -> bool:
    return any(pattern in each for each in sets)


def _is_denied(allowed: ResourcePattern, denied: Sequence[set[ResourcePattern]]) -> bool:
    """Whether everything that a pattern allows is denied by another pattern."""
    name = allowed.name or ""
    if allowed.pattern is PatternType.LITERAL and _is_in(allowed, denied):
        return True
    if allowed.pattern is PatternType.LITERAL and name == WILDCARD:
        return False  # the prefix * covers only names that begin with *
    return any(
        _is_in(ResourcePattern(allowed.kind, name[:length], PatternType.PREFIXED), denied)
        for length in range(len(name) + 1)
    )
