"""ListPartitionReassignments (key 46), version 0.

Behaviour: the controller returns the requested partitions, or all (null), that are being
reassigned, with the added and removed replicas. Others are left out (KIP-455).
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.context import ReplicaAssignment
from kafkapy.controller.events import ListPartitionReassignments
from kafkapy.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
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
    controller: ControllerTask, context: RequestContext, request: ListPartitionReassignmentsRequest
) -> Outcome[ListPartitionReassignmentsResponse]:
    """Pass the request to the controller."""
    require_controller(controller)
    partitions = None
    if request.topics is not None:
        partitions = [
            TopicPartition(t.name, index) for t in request.topics for index in t.partition_indexes
        ]
    return submit_to_controller(
        controller, lambda reply: ListPartitionReassignments(partitions, reply), _response
    )


def _response(
    found: Mapping[TopicPartition, ReplicaAssignment] | ErrorCode,
) -> ListPartitionReassignmentsResponse:
    if isinstance(found, ErrorCode):
        return refuse(None, not_controller(), 0)
    topics: dict[str, OngoingTopicReassignment] = {}
    for (name, index), assignment in found.items():
        topic = topics.setdefault(name, OngoingTopicReassignment(name=name))
        topic.partitions.append(
            OngoingPartitionReassignment(
                partition_index=index,
                replicas=list(assignment.replicas),
                adding_replicas=list(assignment.adding),
                removing_replicas=list(assignment.removing),
            )
        )
    return ListPartitionReassignmentsResponse(topics=list(topics.values()))


def refuse(request: object, error: ApiError, version: int) -> ListPartitionReassignmentsResponse:
    """One error for the whole request."""
    return ListPartitionReassignmentsResponse(error_code=error.code, error_message=error.message)
