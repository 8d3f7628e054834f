"""AlterPartitionReassignments (key 45), version 0.

Behaviour: the controller begins, redirects or (null replicas) cancels reassignments and answers
when they are recorded; ListPartitionReassignments returns their progress (KIP-455). Not done: as in
Kafka, the timeout is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.events import AlterPartitionReassignments, ReassignmentResult
from kafkapy.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kafkapy.server.api.handler_support import (
    not_controller,
    require_controller,
    submit_to_controller,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.cluster.controller_task import ControllerTask
from kafkapy.server.requests.outcomes import Outcome


def handle(
    controller: ControllerTask, context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> Outcome[AlterPartitionReassignmentsResponse]:
    """Pass the request to the controller."""
    require_controller(controller)
    targets = {
        TopicPartition(topic.name, row.partition_index): (
            None if row.replicas is None else tuple(row.replicas)
        )
        for topic in request.topics
        for row in topic.partitions
    }
    return submit_to_controller(
        controller, lambda reply: AlterPartitionReassignments(targets, reply), _response
    )


def _response(
    results: Mapping[TopicPartition, ReassignmentResult] | ErrorCode,
) -> AlterPartitionReassignmentsResponse:
    if isinstance(results, ErrorCode):
        return refuse(None, not_controller(), 0)
    topics: dict[str, ReassignableTopicResponse] = {}
    for (name, index), (error, message) in results.items():
        topic = topics.setdefault(name, ReassignableTopicResponse(name=name))
        topic.partitions.append(
            ReassignablePartitionResponse(
                partition_index=index, error_code=error, error_message=message
            )
        )
    return AlterPartitionReassignmentsResponse(responses=list(topics.values()))


def refuse(request: object, error: ApiError, version: int) -> AlterPartitionReassignmentsResponse:
    """One error for the whole request."""
    return AlterPartitionReassignmentsResponse(error_code=error.code, error_message=error.message)
