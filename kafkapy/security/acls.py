"""Access control entries: principal, operation, host, permission and resource, in Kafka's terms.

The same types are filters (`AclBindingFilter`), in which ANY and None match everything.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from kafkapy.common.errors import ConfigError, ErrorCode

CLUSTER_NAME: Final = "kafka-cluster"
WILDCARD: Final = "*"
WILDCARD_PRINCIPAL: Final = "User:*"


class ResourceKind(IntEnum):
    """`org.apache.kafka.common.resource.ResourceType`."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """`org.apache.kafka.common.resource.PatternType`."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(IntEnum):
    """`org.apache.kafka.common.acl.AclOperation`."""

    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14


class Permission(IntEnum):
    """`org.apache.kafka.common.acl.AclPermissionType`."""

    ANY = 1
    DENY = 2
    ALLOW = 3


class ResourcePattern(NamedTuple):
    """The resource of an entry. In a filter, a name of None matches any. `str()` is Kafka's
    text.
    """

    kind: ResourceKind
    name: str | None
    pattern: PatternType

    def matches(self, pattern: ResourcePattern) -> bool:
        """Whether this filter matches a resource's pattern (`ResourcePatternFilter`)."""
        if self.kind not in (ResourceKind.ANY, pattern.kind):
            return False
        if self.pattern not in (PatternType.ANY, PatternType.MATCH, pattern.pattern):
            return False
        if self.name is None or self.name == pattern.name:
            return True
        if self.pattern is not PatternType.MATCH or pattern.name is None:
            return False
        if pattern.pattern is PatternType.LITERAL:
            return pattern.name == WILDCARD
        return self.name.startswith(pattern.name)

    def __str__(self) -> str:
        return (
            f"ResourcePattern(resourceType={self.kind.name}, name={self.name or '<any>'},"
            f" patternType={self.pattern.name})"
        )


class AccessControlEntry(NamedTuple):
    """An entry. In a filter, None matches any value. `str()` is Kafka's text."""

    principal: str | None
    host: str | None
    operation: Operation
    permission: Permission

    def matches(self, entry: AccessControlEntry) -> bool:
        """Whether this filter matches an entry (`AccessControlEntryFilter`)."""
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (Operation.ANY, entry.operation)
            and self.permission in (Permission.ANY, entry.permission)
        )

    def __str__(self) -> str:
        return (
            f"(principal={self.principal}, host={self.host}, operation={self.operation.name},"
            f" permissionType={self.permission.name})"
        )


ANY_ENTRY: Final = AccessControlEntry(None, None, Operation.ANY, Permission.ANY)
ANY_RESOURCE: Final = ResourcePattern(ResourceKind.ANY, None, PatternType.ANY)


REFUSALS: Final = {
    ResourceKind.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceKind.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceKind.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceKind.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ResourceKind.USER: ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
}
"""The error code of a refusal, by resource type."""


def parse_principal(text: str) -> tuple[str, str]:
    """The type and the name of a principal (`SecurityUtils.parseKafkaPrincipal`).

    Raises:
        ConfigError: it has no type or no name.
    """
    kind, _, name = text.partition(":")
    if not kind or not name:
        raise ConfigError(f"expected a string in format principalType:principalName but got {text}")
    return kind, name
