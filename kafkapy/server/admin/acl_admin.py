"""Describes, adds and removes ACL entries.

The checks, their order and messages are those of `AclApis` and `AclAuthorizer.createAcls`,
`deleteAcls`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from kafkapy.common.errors import ApiError, ErrorCode, KafkapyError
from kafkapy.metadata.acl_authorizer import AclAuthorizer
from kafkapy.security.acls import (
    CLUSTER_NAME,
    AccessControlEntry,
    Operation,
    PatternType,
    Permission,
    ResourceKind,
    ResourcePattern,
)
from kafkapy.server.changes.acl_changes import AclChangeListener
from kafkapy.server.requests.turns import CHANGE_UNITS, CHECK_UNITS, Pace, chunks
from kafkapy.zk.stores.acl_store import Entries
from kafkapy.zk.stores.store import ZkStore

logger = logging.getLogger("kafka.security.authorizer.AclAuthorizer")


class Binding(NamedTuple):
    """An entry and its resource (`AclBinding`), or a filter for them (`AclBindingFilter`)."""

    resource: ResourcePattern
    entry: AccessControlEntry


class DeletedBinding(NamedTuple):
    """An entry that a filter matched. `error` is set if it was not removed."""

    binding: Binding
    error: ApiError | None = None


class AclAdmin:
    """Describes the entries of all resources from the authorizer, and changes them in the store."""

    def __init__(
        self, store: ZkStore, authorizer: AclAuthorizer, changes: AclChangeListener
    ) -> None:
        self._store = store.acls
        self._authorizer = authorizer
        self._changes = changes

    def describe(self, wanted: Binding) -> dict[ResourcePattern, list[AccessControlEntry]]:
        """The entries that match, by resource, both sorted."""
        found = {}
        for resource in sorted(filter(wanted.resource.matches, self._authorizer.acls)):
            entries = sorted(filter(wanted.entry.matches, self._authorizer.acls[resource]))
            if entries:
                found[resource] = entries
        return found

    async def create(self, bindings: Sequence[Binding], pace: Pace) -> list[ApiError | None]:
        """Add entries. Returns None or the error of each, in order."""
        results: list[ApiError | None] = []
        by_resource: dict[ResourcePattern, list[int]] = {}
        for few in chunks(bindings):
            for binding in few:
                refusal = _refusal(binding)
                if refusal is None:
                    by_resource.setdefault(binding.resource, []).append(len(results))
                results.append(refusal)
            await pace.charge(CHECK_UNITS * len(few))
        for resource, indexes in by_resource.items():
            await pace.charge(CHANGE_UNITS + len(indexes))
            added = frozenset(bindings[index].entry for index in indexes)
            error = await self._update(resource, added.union)
            for index in indexes:
                results[index] = error
        return results

    async def delete(self, filters: Sequence[Binding], pace: Pace) -> list[list[DeletedBinding]]:
        """Remove the entries that match. Returns the entries of each filter, without those that an
        earlier filter matched.
        """
        found: list[list[DeletedBinding]] = [[] for _ in filters]
        resources = dict.fromkeys(self._authorizer.acls)
        named: dict[ResourcePattern, _Filters] = {}
        general: list[tuple[int, Binding]] = []
        # A filter that repeats an earlier one matches no further entries.
        for each, index in {each: n for n, each in reversed([*enumerate(filters)])}.items():
            if _is_single_resource(each.resource):
                named.setdefault(each.resource, _Filters()).add(index, each.entry)
                # A named resource may be so new that the authorizer does not have it yet.
                resources.setdefault(each.resource)
            else:
                general.append((index, each))
        for resource in resources:
            matching = named.get(resource, _Filters())
            for index, each in general:
                if each.resource.matches(resource):
                    matching.add(index, each.entry)
            await pace.charge(1 + len(general) // 2)
            if not matching:
                continue
            await pace.charge(CHANGE_UNITS)
            removed: dict[AccessControlEntry, int] = {}
            error = await self._update(resource, partial(_remove_matching, matching, removed))
            if error is not None and not removed:
                # The znode was not read. The entries in memory are returned with the error.
                known = self._authorizer.acls.get(resource, frozenset())
                _remove_matching(matching, removed, known)
            for entry, index in removed.items():
                found[index].append(DeletedBinding(Binding(resource, entry), error))
        return found

    async def _update(
        self, resource: ResourcePattern, change: Callable[[Entries], Entries]
    ) -> ApiError | None:
        try:
            await self._store.update(resource, change)
            # After the response the change must be in effect, at least at this broker.
            await self._changes.refresh(resource)
        except KafkapyError as error:
            logger.error("Cannot change the ACLs of %s: %s", resource, error)
            message = f"Failed to update ACLs for {resource}"
            return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, message)
        logger.info("Updated ACLs for %s", resource)
        return None


class _Filters:
    """Filters for the entries of one resource, indexed by principal and host. A request may have
    one filter for each of very many entries.
    """

    def __init__(self) -> None:
        self._by_client: dict[
            tuple[str | None, str | None], list[tuple[int, AccessControlEntry]]
        ] = {}

    def __bool__(self) -> bool:
        return bool(self._by_client)

    def add(self, index: int, wanted: AccessControlEntry) -> None:
        client = (wanted.principal, wanted.host)
        self._by_client.setdefault(client, []).append((index, wanted))

    def first(self, entry: AccessControlEntry) -> int | None:
        """The number of the first filter that matches the entry."""
        principal, host = entry.principal, entry.host
        return min(
            (
                index
                for client in ((principal, host), (principal, None), (None, host), (None, None))
                for index, wanted in self._by_client.get(client, ())
                if wanted.matches(entry)
            ),
            default=None,
        )


def _remove_matching(
    filters: _Filters, removed: dict[AccessControlEntry, int], entries: Entries
) -> Entries:
    """The entries that no filter matches. The others are put into `removed`, with the number of the
    first filter that matches.
    """
    removed.clear()
    for entry in sorted(entries):
        index = filters.first(entry)
        if index is not None:
            removed[entry] = index
    return entries.difference(removed)


def _is_single_resource(resource: ResourcePattern) -> bool:
    """Whether a filter can match one resource only."""
    return (
        resource.kind is not ResourceKind.ANY
        and resource.pattern in (PatternType.LITERAL, PatternType.PREFIXED)
        and bool(resource.name)
        and "/" not in (resource.name or "")
    )


def _refusal(binding: Binding) -> ApiError | None:
    """The error of an invalid entry; None for a valid one."""
    resource, entry = binding
    message = None
    if resource.kind is ResourceKind.CLUSTER and resource.name != CLUSTER_NAME:
        message = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    elif not resource.name:
        message = "Invalid empty resource name"
    elif (
        resource.kind is ResourceKind.ANY
        or resource.pattern in (PatternType.ANY, PatternType.MATCH)
        or entry.operation is Operation.ANY
        or entry.permission is Permission.ANY
    ):
        message = "ACL binding contains unknown elements"
    elif "/" in resource.name:
        message = f"ACL binding contains invalid resource name: {resource.name}"
    elif ":" not in (entry.principal or ""):  # Kafka's brokers could not read the znode
        message = (
            f"expected a string in format principalType:principalName but got {entry.principal}"
        )
    return None if message is None else ApiError(ErrorCode.INVALID_REQUEST, message)
