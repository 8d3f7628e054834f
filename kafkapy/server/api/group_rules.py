"""Authorization rules of ConsumerGroupDescribe and ShareGroupDescribe, which also need DESCRIBE on
the groups' topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.security.acls import Operation, ResourceKind
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.api.authorization_rules import (
    GroupRow,
    Rule,
    narrow_group_operations,
    require_for_rows,
    resource_action,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.api.served import ServedApi
from kafkapy.server.requests.outcomes import OutcomeOrWork, then
from kafkapy.server.requests.turns import ROW_UNITS, Work

if TYPE_CHECKING:
    from kafkapy.protocol.messages.consumer_group_describe import (
        ConsumerGroupDescribeRequest,
        ConsumerGroupDescribeResponse,
    )
    from kafkapy.protocol.messages.share_group_describe import (
        ShareGroupDescribeRequest,
        ShareGroupDescribeResponse,
    )

_HIDDEN_TOPICS_MESSAGE: Final = (
    "The group has described topic(s) that the client is not authorized to describe."
)


class _GroupRowWithError(GroupRow, Protocol):
    """A described group, in a response with error messages."""

    error_code: int
    error_message: str | None


def _describe_consumer_groups(
    acls: Authorization,
    served: ServedApi[ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse],
    context: RequestContext,
    request: ConsumerGroupDescribeRequest,
) -> OutcomeOrWork[ConsumerGroupDescribeResponse]:
    rule = require_for_rows(
        resource_action(Operation.DESCRIBE, ResourceKind.GROUP), "group_ids", "groups"
    )

    def narrow(response: ConsumerGroupDescribeResponse) -> Work[ConsumerGroupDescribeResponse]:
        for group in response.groups:
            yield ROW_UNITS
            names = {
                row.topic_name
                for member in group.members
                for assignment in (member.assignment, member.target_assignment)
                for row in assignment.topic_partitions
            }.union(*(member.subscribed_topic_names for member in group.members))
            if not _may_describe_topics(acls, context, group, names):
                group.members = []
        return response

    return then(rule(acls, served, context, request), narrow)


def _may_describe_topics(
    acls: Authorization, context: RequestContext, group: _GroupRowWithError, topics: Iterable[str]
) -> bool:
    """Whether the caller may describe all `topics` of a group's members. If not, sets the group's
    error. Also keeps only the operations that the caller may perform.
    """
    narrow_group_operations(acls, context, group)
    if all(
        acls.is_allowed(context, Operation.DESCRIBE, ResourceKind.TOPIC, name) for name in topics
    ):
        return True
    group.error_code, group.error_message = (
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        _HIDDEN_TOPICS_MESSAGE,
    )
    return False


def _describe_share_groups(
    acls: Authorization,
    served: ServedApi[ShareGroupDescribeRequest, ShareGroupDescribeResponse],
    context: RequestContext,
    request: ShareGroupDescribeRequest,
) -> OutcomeOrWork[ShareGroupDescribeResponse]:
    rule = require_for_rows(
        resource_action(Operation.DESCRIBE, ResourceKind.GROUP), "group_ids", "groups"
    )

    def narrow(response: ShareGroupDescribeResponse) -> Work[ShareGroupDescribeResponse]:
        for group in response.groups:
            yield ROW_UNITS
            members = group.members
            names = {r.topic_name for m in members for r in m.assignment.topic_partitions}
            names.update(*(member.subscribed_topic_names for member in members))
            if not _may_describe_topics(acls, context, group, names):
                group.members = []
        return response

    return then(rule(acls, served, context, request), narrow)


GROUP_RULES: Final[Mapping[int, Rule]] = {
    ApiKey.CONSUMER_GROUP_DESCRIBE: _describe_consumer_groups,
    ApiKey.SHARE_GROUP_DESCRIBE: _describe_share_groups,
}
