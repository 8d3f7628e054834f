"""ShareAcknowledge (key 79), versions 1-2 (KIP-932).

Behaviour: answered when the share coordinator has stored the acknowledgements. Epoch -1 ends the
session. Version notes: v2 renews locks (KIP-1222).
"""

from __future__ import annotations

from dataclasses import dataclass

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.messages.share_acknowledge import (
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


@dataclass(frozen=True)
class Handler:
    """Acknowledges records of members."""

    requests: ShareRequests
    cluster: ClusterView

    def handle(
        self, context: RequestContext, request: ShareAcknowledgeRequest
    ) -> Outcome[ShareAcknowledgeResponse]:
        """Apply acknowledgements."""
        requests, epoch = self.requests, request.share_session_epoch
        key = requests.member(context, request.group_id, request.member_id)
        if epoch == INITIAL_EPOCH:
            raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session = requests.shares.sessions.use(key, epoch)
        rows = {
            TopicIdIndex(topic.topic_id, row.partition_index): row.acknowledgement_batches
            for topic in request.topics
            for row in topic.partitions
        }
        pending: Pending[ShareAcknowledgeResponse] = Pending()

        def answered(outcomes: dict[TopicIdIndex, AckOutcome]) -> None:
            pending.complete(self._response(context, key.group_id, outcomes))

        requests.acknowledge(context, key, rows, answered, may_renew=request.is_renew_ack)
        if epoch == FINAL_EPOCH:
            requests.close(session)
        return pending.response if pending.done else pending

    def _response(
        self, context: RequestContext, group_id: str, outcomes: dict[TopicIdIndex, AckOutcome]
    ) -> ShareAcknowledgeResponse:
        topics: dict[bytes, ShareAcknowledgeTopicResponse] = {}
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
            topic = topics.setdefault(
                topic_id, ShareAcknowledgeTopicResponse(topic_id=topic_id, partitions=[])
            )
            topic.partitions.append(row)
        limits = self.requests.shares.configs.limits(group_id)
        return ShareAcknowledgeResponse(
            acquisition_lock_timeout_ms=limits.lock_duration_ms,
            responses=list(topics.values()),
            node_endpoints=[
                NodeEndpoint(node_id=node, host=host, port=port, rack=rack)
                for node, host, port, rack in (
                    self.cluster.nodes(context.listener) if leaders else ()
                )
                if node in leaders
            ],
        )


def refuse(
    request: ShareAcknowledgeRequest, error: ApiError, version: int
) -> ShareAcknowledgeResponse:
    """A top-level error with no rows."""
    return ShareAcknowledgeResponse(error_code=error.code, error_message=error.message)
