"""Authorization checks of handlers and of `authorization_rules` (`kafka.server.AuthHelper`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kafkapy.common.errors import ApiError
from kafkapy.common.topic_partition import quoted
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.security.acls import CLUSTER_NAME, REFUSALS, Operation, ResourceKind
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.requests.turns import CHECK_UNITS, Work, chunks
from kafkapy.zk.stores.paths import java_name

if TYPE_CHECKING:
    from kafkapy.metadata.acl_authorizer import AclAuthorizer

T = TypeVar("T")

_audit = logging.getLogger("kafka.authorizer.logger")


class Action(NamedTuple):
    """An operation on a resource that must be allowed (`Action` in Kafka's `Authorizer`)."""

    operation: Operation
    kind: ResourceKind
    name: str


class Authorization:
    """The authorizer of a broker. Without one, all principals may perform all operations."""

    def __init__(self, authorizer: AclAuthorizer | None) -> None:
        self.authorizer = authorizer

    def is_allowed(
        self,
        context: RequestContext,
        operation: Operation,
        kind: ResourceKind,
        name: str = CLUSTER_NAME,
    ) -> bool:
        """Whether the caller may perform an operation."""
        authorizer = self.authorizer
        return authorizer is None or authorizer.is_allowed(
            context.principal, context.client_host, operation, kind, name
        )

    def require(
        self,
        context: RequestContext,
        operation: Operation,
        kind: ResourceKind,
        name: str = CLUSTER_NAME,
    ) -> None:
        """Require that the caller may perform an operation.

        Raises:
            ApiError: the error code of this resource type.
        """
        if not self.is_allowed(context, operation, kind, name):
            log_denied(context, Action(operation, kind, name))
            message = f"{context.principal} is not authorized: {operation.name} on {name} is needed"
            raise ApiError(REFUSALS[kind], message)

    def allowed_operations(
        self, context: RequestContext, operations: int, kind: ResourceKind, name: str
    ) -> int:
        """The allowed operations of a bit set."""
        return sum(
            1 << operation
            for operation in Operation
            if operations >> operation & 1 and self.is_allowed(context, operation, kind, name)
        )

    def describable_rows(
        self,
        context: RequestContext,
        kind: ResourceKind,
        rows: Sequence[T],
        name_of: Callable[[T], str],
    ) -> Work[list[T]]:
        """The rows whose resource the caller may describe. Others are left out without an error."""
        may_describe = partial(self.is_allowed, context, Operation.DESCRIBE, kind)
        describable: list[T] = []
        for few in chunks(rows):
            describable += [row for row in few if may_describe(name_of(row))]
            yield CHECK_UNITS * len(few)
        return describable

    def may_create_topic(self, context: RequestContext, name: str) -> bool:
        """Whether the caller may create a topic automatically."""
        return self.is_allowed(context, Operation.CREATE, ResourceKind.CLUSTER) or self.is_allowed(
            context, Operation.CREATE, ResourceKind.TOPIC, name
        )


def are_allowed(
    authorizer: AclAuthorizer, principal: str, host: str, actions: Sequence[Action]
) -> bool:
    """Whether a principal may perform all these operations."""
    return all(authorizer.is_allowed(principal, host, *action) for action in actions)


def log_denied(context: RequestContext, action: Action) -> None:
    """Write Kafka's audit line for a denied operation. Callers that only leave a resource out of a
    response do not log.
    """
    _audit.info(
        "Principal = %s is Denied operation = %s from host = %s on resource = %s:LITERAL:%s"
        " for request = %s",
        context.principal,
        java_name(action.operation.name),
        context.client_host,
        java_name(action.kind.name),
        # Names of other resources than topics may have line breaks, which would forge log lines.
        action.name if action.name.isprintable() else quoted(action.name),
        java_name(ApiKey(context.header.api_key).name),
    )
