"""AlterPartition (key 56), versions 0-3.

Behaviour: the controller writes the ISRs that a leader proposes, and answers with the state of each
partition. A broker that is not the controller answers NOT_CONTROLLER. Version notes: 1 leader
recovery state (KIP-704); 2 topic ids, and INELIGIBLE_REPLICA, which older leaders see as
OPERATION_NOT_ATTEMPTED (KIP-841); 3 broker epochs of the members (KIP-903), which Apache Kafka does
not check in ZooKeeper mode.
"""

from __future__ import annotations

from kafkapy.controller.events import AlterPartition, AlterPartitionResult
from kafkapy.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
)
from kafkapy.server.api.handler_support import submit_to_controller
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.cluster.controller_codec import alter_partition_items, alter_partition_response
from kafkapy.server.cluster.controller_task import ControllerTask
from kafkapy.server.requests.outcomes import Outcome


def handle(
    controller: ControllerTask, context: RequestContext, request: AlterPartitionRequest
) -> Outcome[AlterPartitionResponse]:
    """Pass the request to the controller."""
    items = alter_partition_items(request)

    def respond(result: AlterPartitionResult) -> AlterPartitionResponse:
        return alter_partition_response(result, context.version)

    return submit_to_controller(
        controller,
        lambda reply: AlterPartition(request.broker_id, request.broker_epoch, items, reply),
        respond,
    )
