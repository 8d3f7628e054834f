"""ElectLeaders (key 43), versions 0-2.

Behaviour: the controller elects preferred or unclean leaders. The response is sent when this
broker's metadata has the new leaders. After `timeoutMs` it is REQUEST_TIMED_OUT, although they were
elected. In a request for all partitions (null), those that need no election are left out. Version
notes: v0 has preferred elections only (KIP-183), and errors only in the partitions' rows; v1 adds
the election type and a top-level error (KIP-460).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.ports import Clock
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.events import ElectionResult, ElectionType, ElectLeaders
from kafkapy.metadata.cache import MetadataCache
from kafkapy.metadata.image import MetadataImage
from kafkapy.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from kafkapy.server.api.handler_support import (
    controller_answer,
    not_controller,
    require_controller,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.cluster.controller_task import ControllerTask
from kafkapy.server.cluster.metadata_waiter import MetadataWaiter
from kafkapy.server.requests.outcomes import Later
from kafkapy.server.requests.turns import Work, finished, pieces

_NOT_NEEDED = "Leader election not needed for topic partition."


@dataclass(frozen=True)
class Handler:
    """Elects leaders on request."""

    controller: ControllerTask
    metadata: MetadataCache
    waiter: MetadataWaiter
    clock: Clock

    def handle(
        self, context: RequestContext, request: ElectLeadersRequest
    ) -> Later[Work[ElectLeadersResponse]]:
        """Pass the request to the controller, then wait for the metadata."""
        require_controller(self.controller)
        try:
            election_type = ElectionType(request.election_type)
        except ValueError:
            message = f"Unknown election type {request.election_type}"
            raise ApiError(ErrorCode.INVALID_REQUEST, message) from None
        return self._elect(request, election_type)

    async def _elect(
        self, request: ElectLeadersRequest, election_type: ElectionType
    ) -> Work[ElectLeadersResponse]:
        deadline_ms = self.clock.monotonic_ms() + request.timeout_ms
        partitions = _asked(request)
        results: Mapping[TopicPartition, ElectionResult] | ErrorCode = await controller_answer(
            self.controller, lambda reply: ElectLeaders(partitions, election_type, reply)
        )
        if isinstance(results, ErrorCode):
            raise not_controller()
        elected = {p: r.leader for p, r in results.items() if r.error is ErrorCode.NONE}

        def waiting(image: MetadataImage) -> set[TopicPartition]:
            return {p for p, leader in elected.items() if _leader(image, p) != leader}

        left_ms = deadline_ms - self.clock.monotonic_ms()
        await self.waiter.when(lambda image: not waiting(image), left_ms)
        late = waiting(self.metadata.image)
        timed_out = ElectionResult(ErrorCode.REQUEST_TIMED_OUT, "The request timed out.")
        return _response({p: timed_out if p in late else result for p, result in results.items()})


def _asked(request: ElectLeadersRequest) -> list[TopicPartition] | None:
    if request.topic_partitions is None:
        return None
    return [
        TopicPartition(topic.topic, index)
        for topic in request.topic_partitions
        for index in topic.partitions
    ]


def _leader(image: MetadataImage, partition: TopicPartition) -> int | None:
    topic = image.topics.get(partition.topic)
    known = None if topic is None else topic.partitions.get(partition.partition)
    return None if known is None else known.leader


def _response(
    results: Mapping[TopicPartition, ElectionResult], error: ErrorCode = ErrorCode.NONE
) -> Work[ElectLeadersResponse]:
    topics: dict[str, ReplicaElectionResult] = {}
    for few in pieces(list(results.items())):
        for (name, index), result in few:
            topic = topics.setdefault(name, ReplicaElectionResult(topic=name))
            needless = result.error is ErrorCode.ELECTION_NOT_NEEDED
            topic.partition_result.append(
                PartitionResult(
                    partition_id=index,
                    error_code=result.error,
                    error_message=_NOT_NEEDED if needless else result.message,
                )
            )
        yield 2 * len(few)
    return ElectLeadersResponse(error_code=error, replica_election_results=list(topics.values()))


def refuse(request: ElectLeadersRequest, error: ApiError, version: int) -> ElectLeadersResponse:
    """The same error for the request and for every partition: v0 has only rows."""
    refusal = ElectionResult(error.code, error.message)
    return finished(_response(dict.fromkeys(_asked(request) or (), refusal), error.code))
