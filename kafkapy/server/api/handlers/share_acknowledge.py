"""ShareAcknowledge (key 79), versions 1-2 (KIP-932).

Behaviour: the response is sent when the share coordinator has stored the acknowledgements. Epoch -1
ends the session. Version notes: v2 renews locks (KIP-1222).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.uuid import Uuid
from kafkapy.protocol.messages.share_acknowledge import (
    AcknowledgementBatch,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareAcknowledgeTopicResponse,
)
from kafkapy.replication.shares.share_sessions import FINAL_EPOCH, INITIAL_EPOCH, TopicIdIndex
from kafkapy.server.api.cluster_view import ClusterView
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.api.share_requests import AckOutcome, ShareRequests
from kafkapy.server.requests.outcomes import Outcome, Pending
from kafkapy.server.requests.turns import CHECK_UNITS, ROW_UNITS, Work, as_work


@dataclass(frozen=True)
class Handler:
    """Applies the acknowledgements of members."""

    requests: ShareRequests
    cluster: ClusterView

    def handle(
        self, context: RequestContext, request: ShareAcknowledgeRequest
    ) -> Work[Outcome[ShareAcknowledgeResponse]]:
        """Apply acknowledgements."""
        requests, epoch = self.requests, request.share_session_epoch
        key = requests.member(context, request.group_id, request.member_id)
        if epoch == INITIAL_EPOCH:
            raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session = requests.shares.sessions.use(key, epoch)
        rows: dict[TopicIdIndex, Sequence[AcknowledgementBatch]] = {}
        for topic in request.topics:
            for row in topic.partitions:
                if row.acknowledgement_batches:
                    partition = TopicIdIndex(topic.topic_id, row.partition_index)
                    rows[partition] = row.acknowledgement_batches
                yield CHECK_UNITS
            yield 1
        pending: Pending[ShareAcknowledgeResponse] = Pending()

        def on_outcomes(outcomes: dict[TopicIdIndex, AckOutcome]) -> None:
            pending.complete(self._response(context, key.group_id, outcomes))

        yield from requests.acknowledge(
            context, key, rows, on_outcomes, may_renew=request.is_renew_ack
        )
        if epoch == FINAL_EPOCH:
            requests.close(session)
        return (yield from as_work(pending.response)) if pending.done else pending

    def _response(
        self, context: RequestContext, group_id: str, outcomes: dict[TopicIdIndex, AckOutcome]
    ) -> Work[ShareAcknowledgeResponse]:
        topics: dict[Uuid, list[PartitionData]] = {}
        leaders: set[int] = set()
        for (topic_id, index), outcome in outcomes.items():
            row = PartitionData(
                partition_index=index, error_code=outcome.error, error_message=outcome.message
            )
            if outcome.error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                name = self.cluster.image.topic_names_by_id.get(topic_id, "")
                known = self.cluster.image.partition(name, index)
                if known is not None:
                    row.current_leader = LeaderIdAndEpoch(
                        leader_id=known.leader, leader_epoch=known.leader_epoch
                    )
                    leaders.add(known.leader)
            topics.setdefault(topic_id, []).append(row)
            yield ROW_UNITS
        limits = self.requests.shares.configs.limits(group_id)
        nodes = self.cluster.nodes(context.listener) if leaders else ()
        return ShareAcknowledgeResponse(
            acquisition_lock_timeout_ms=limits.lock_duration_ms,
            responses=[
                ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=found)
                for topic_id, found in topics.items()
            ],
            node_endpoints=[
                NodeEndpoint(node_id=node, host=host, port=port, rack=rack)
                for node, host, port, rack in nodes
                if node in leaders
            ],
        )


def refuse(
    request: ShareAcknowledgeRequest, error: ApiError, version: int
) -> ShareAcknowledgeResponse:
    """A top-level error with no rows."""
    return ShareAcknowledgeResponse(error_code=error.code, error_message=error.message)
