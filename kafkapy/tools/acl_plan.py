"""Plans the entries that `acls` adds and removes (`AclCommand`). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from kafkapy.admin.acls import Acls
from kafkapy.common.errors import ConfigError
from kafkapy.security.acls import (
    CLUSTER_NAME,
    AccessControlEntry,
    Operation,
    PatternType,
    Permission,
    ResourceKind,
    ResourcePattern,
    parse_principal,
)

WILDCARD_HOST: Final = "*"
_O: Final = Operation

# The operations of each resource type, except All.
SUPPORTED_OPERATIONS: Final[dict[ResourceKind, tuple[Operation, ...]]] = {
    ResourceKind.TOPIC: (
        *(_O.READ, _O.WRITE, _O.CREATE, _O.DESCRIBE, _O.DELETE, _O.ALTER),
        *(_O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS),
    ),
    ResourceKind.GROUP: (
        *(_O.READ, _O.DESCRIBE, _O.DELETE),
        *(_O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS),  # as in Kafka 4, which has configs of groups
    ),
    ResourceKind.CLUSTER: (
        *(_O.CREATE, _O.CLUSTER_ACTION, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS),
        *(_O.IDEMPOTENT_WRITE, _O.ALTER, _O.DESCRIBE),
    ),
    ResourceKind.TRANSACTIONAL_ID: (_O.DESCRIBE, _O.WRITE),
    ResourceKind.DELEGATION_TOKEN: (_O.DESCRIBE,),
    ResourceKind.USER: (_O.CREATE_TOKENS, _O.DESCRIBE_TOKENS),
}
_PRODUCER_OPERATIONS: Final = {
    ResourceKind.TOPIC: (_O.WRITE, _O.DESCRIBE, _O.CREATE),
    ResourceKind.TRANSACTIONAL_ID: (_O.WRITE, _O.DESCRIBE),
}
_CONSUMER_OPERATIONS: Final = {
    ResourceKind.TOPIC: (_O.READ, _O.DESCRIBE),
    ResourceKind.GROUP: (_O.READ,),
}


@dataclass(frozen=True, slots=True)
class Principals:
    """Allowed and denied principals, and their hosts. No host means any host."""

    allowed: Sequence[str] = ()
    denied: Sequence[str] = ()
    allowed_hosts: Sequence[str] = ()
    denied_hosts: Sequence[str] = ()

    def entries(self, operations: Iterable[Operation]) -> list[AccessControlEntry]:
        """One entry for each principal, host and operation, sorted.

        Raises:
            ConfigError: a principal is not type:name.
        """
        wanted = list(operations)
        return sorted(
            {
                AccessControlEntry(
                    checked_principal(principal), host.strip(), operation, permission
                )
                for principals, hosts, permission in (
                    (self.allowed, self.allowed_hosts, Permission.ALLOW),
                    (self.denied, self.denied_hosts, Permission.DENY),
                )
                for principal in principals
                for host in hosts or (WILDCARD_HOST,)
                for operation in wanted
            }
        )


def checked_principal(text: str) -> str:
    """
    Raises:
        ConfigError: the principal is not type:name.
    """
    parse_principal(text.strip())
    return text.strip()


def parse_operation(text: str) -> Operation | None:
    """Parse `Read`, `DescribeConfigs` or `DESCRIBE_CONFIGS`; None if it is no operation."""
    wanted = text.strip().replace("_", "").lower()
    names = {operation.name.replace("_", "").lower(): operation for operation in Operation}
    return names.get(wanted)


def check_operations(
    resources: Iterable[ResourcePattern], operations: Sequence[Operation | None]
) -> list[Operation]:
    """The operations. Every resource must support them.

    Raises:
        ConfigError: names the resource type and its operations.
    """
    for resource in resources:
        supported = (Operation.ALL, *SUPPORTED_OPERATIONS.get(resource.kind, ()))
        if any(operation not in supported for operation in operations):
            names = ", ".join(_operation_name(operation) for operation in reversed(supported))
            raise ConfigError(f"ResourceType {resource.kind.name} only supports operations {names}")
    return [operation for operation in operations if operation is not None]


def planned_entries(
    resources: Sequence[ResourcePattern], principals: Principals, operations: Sequence[Operation]
) -> Acls:
    """The same entries for each resource."""
    return {resource: principals.entries(operations) for resource in resources}


def planned_role_entries(
    resources: Sequence[ResourcePattern],
    principals: Principals,
    *,
    producer: bool,
    consumer: bool,
    idempotent: bool,
) -> Acls:
    """The entries for `--producer` and `--consumer`."""
    planned: Acls = {}
    for resource in resources:
        wanted: list[Operation] = []
        wanted += _PRODUCER_OPERATIONS.get(resource.kind, ()) if producer else ()
        wanted += _CONSUMER_OPERATIONS.get(resource.kind, ()) if consumer else ()
        if wanted:
            planned[resource] = principals.entries(dict.fromkeys(wanted))
    if producer and idempotent:
        cluster = ResourcePattern(ResourceKind.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)
        planned[cluster] = principals.entries([Operation.IDEMPOTENT_WRITE])
    return planned


def _operation_name(operation: Operation) -> str:
    """The form `DescribeConfigs` of an operation's name."""
    return "".join(word.capitalize() for word in operation.name.split("_"))
