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
    controller_reply,
    not_controller,
    require_controller,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.cluster.controller_task import ControllerTask
from kafkapy.server.cluster.metadata_waiter import MetadataWaiter
from kafkapy.server.requests.outcomes import ResponseCoroutine
from kafkapy.server.requests.turns import Work, chunks, run_now

_NOT_NEEDED_MESSAGE = "Leader election not needed for topic partition."


@dataclass(frozen=True)
class Handler:
    """Elects leaders on request."""

    controller: ControllerTask
    metadata: MetadataCache
    waiter: MetadataWaiter
    clock: Clock

    def handle(
        self, context: RequestContext, request: ElectLeadersRequest
    ) -> ResponseCoroutine[Work[ElectLeadersResponse]]:
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
        partitions = _requested_partitions(request)
        results: Mapping[TopicPartition, ElectionResult] | ErrorCode = await controller_reply(
            self.controller, lambda reply: ElectLeaders(partitions, election_type, reply)
        )
        if isinstance(results, ErrorCode):
            raise not_controller()
        elected = {p: r.leader for p, r in results.items() if r.error is ErrorCode.NONE}

        def without_new_leader(image: MetadataImage) -> set[TopicPartition]:
            return {p for p, leader in elected.items() if _leader(image, p) != leader}

        left_ms = deadline_ms - self.clock.monotonic_ms()
        await self.waiter.wait_until(lambda image: not without_new_leader(image), left_ms)
        not_updated = without_new_leader(self.metadata.image)
        timed_out = ElectionResult(ErrorCode.REQUEST_TIMED_OUT, "The request timed out.")
        return _response(
            {p: timed_out if p in not_updated else result for p, result in results.items()}
        )


def _requested_partitions(request: ElectLeadersRequest) -> list[TopicPartition] | None:
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
    for few in chunks(list(results.items())):
        for (name, index), result in few:
            topic = topics.setdefault(name, ReplicaElectionResult(topic=name))
            is_not_needed = result.error is ErrorCode.ELECTION_NOT_NEEDED
            topic.partition_result.append(
                PartitionResult(
                    partition_id=index,
                    error_code=result.error,
                    error_message=_NOT_NEEDED_MESSAGE if is_not_needed else result.message,
                )
            )
        yield 2 * len(few)
    return ElectLeadersResponse(error_code=error, replica_election_results=list(topics.values()))


def refuse(request: ElectLeadersRequest, error: ApiError, version: int) -> ElectLeadersResponse:
    """The same error for the request and for every partition: v0 has only rows."""
    refusal = ElectionResult(error.code, error.message)
    return run_now(
        _response(dict.fromkeys(_requested_partitions(request) or (), refusal), error.code)
    )
