"""Access control entries: describe, create, delete (AdminClient's part of `AclCommand`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, Final, TypeVar

from kafkapy.admin.errors import check
from kafkapy.client.cluster import Cluster
from kafkapy.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from kafkapy.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kafkapy.protocol.messages.describe_acls import DescribeAclsRequest
from kafkapy.security.acls import (
    ANY_ENTRY,
    ANY_RESOURCE,
    AccessControlEntry,
    Operation,
    PatternType,
    Permission,
    ResourceKind,
    ResourcePattern,
)

E = TypeVar("E", bound=IntEnum)
Acls = dict[ResourcePattern, list[AccessControlEntry]]

# The first version of the requests with pattern types (KIP-290). Before, all are literal.
_PATTERNS_VERSION: Final = 1


def describe_acls(
    cluster: Cluster,
    resource: ResourcePattern = ANY_RESOURCE,
    entry: AccessControlEntry = ANY_ENTRY,
) -> Acls:
    """The entries that match, by resource, both sorted.

    Raises:
        ApiError: SECURITY_DISABLED without an authorizer; other refusals.
    """
    request = DescribeAclsRequest(**_filter(resource, entry))
    response = cluster.request(request, min_version=_min_version(resource.pattern))
    check(response.error_code, response.error_message)
    found: Acls = {}
    for each in response.resources:
        pattern = ResourcePattern(
            _member(ResourceKind, each.resource_type),
            each.resource_name,
            _member(PatternType, each.pattern_type),
        )
        found[pattern] = sorted(
            AccessControlEntry(
                acl.principal,
                acl.host,
                _member(Operation, acl.operation),
                _member(Permission, acl.permission_type),
            )
            for acl in each.acls
        )
    return dict(sorted(found.items()))


def _member(kind: type[E], code: int) -> E:
    """The member of a code. The code of a later version is named UNKNOWN, as in Kafka's client."""
    try:
        return kind(code)
    except ValueError:
        unknown = int.__new__(kind, code)
        unknown._name_, unknown._value_ = "UNKNOWN", code
        return unknown


def create_acls(
    cluster: Cluster, resource: ResourcePattern, entries: Iterable[AccessControlEntry]
) -> None:
    """Add entries to one resource.

    Raises:
        ApiError: the first refusal; others may be added.
    """
    creations = [
        AclCreation(
            resource_type=resource.kind,
            resource_name=resource.name or "",
            resource_pattern_type=resource.pattern,
            principal=entry.principal or "",
            host=entry.host or "",
            operation=entry.operation,
            permission_type=entry.permission,
        )
        for entry in entries
    ]
    response = cluster.controller_request(
        CreateAclsRequest(creations=creations), min_version=_min_version(resource.pattern)
    )
    for result in response.results:
        check(result.error_code, result.error_message)


def delete_acls(
    cluster: Cluster, resource: ResourcePattern, entries: Sequence[AccessControlEntry]
) -> int:
    """Remove entries of one resource, or all its entries if none are given. Returns the number of
    removed entries.

    Raises:
        ApiError: the first refusal; others may be removed.
    """
    filters = [DeleteAclsFilter(**_filter(resource, entry)) for entry in entries or [ANY_ENTRY]]
    response = cluster.controller_request(
        DeleteAclsRequest(filters=filters), min_version=_min_version(resource.pattern)
    )
    count = 0
    for result in response.filter_results:
        check(result.error_code, result.error_message)
        for match in result.matching_acls:
            check(match.error_code, match.error_message)
            count += 1
    return count


def _min_version(pattern: PatternType) -> int | None:
    """The first version that can express a pattern type."""
    return None if pattern in (PatternType.LITERAL, PatternType.ANY) else _PATTERNS_VERSION


def _filter(resource: ResourcePattern, entry: AccessControlEntry) -> dict[str, Any]:
    """The fields of a filter, which both requests have."""
    return {
        "resource_type_filter": resource.kind,
        "resource_name_filter": resource.name,
        "pattern_type_filter": resource.pattern,
        "principal_filter": entry.principal,
        "host_filter": entry.host,
        "operation": entry.operation,
        "permission_type": entry.permission,
    }
