"""Refused rows of produce responses, for the general path and the fast path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
)
from kafkapy.server.api.request_context import RequestContext

if TYPE_CHECKING:
    from kafkapy.server.api.cluster_view import ClusterView
    from kafkapy.server.counts.metrics import Metrics

_FIRST_VERSION_WITH_LEADERS: Final = 10


class ProduceResponses:
    """Adds errors and leaders to the produce responses of one broker."""

    def __init__(self, metrics: Metrics, cluster: ClusterView) -> None:
        self._metrics = metrics
        self._cluster = cluster

    def refuse_row(self, topic: str | None, row: PartitionProduceResponse, error: ApiError) -> None:
        """Set the error of a refused append in a row, and count it."""
        row.error_code = error.code
        row.base_offset = -1
        row.error_message = error.own_message
        row.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in getattr(error, "record_errors", ())
        ]
        if topic is None:  # the topic id is unknown
            return
        self._metrics.count_failed_produce(topic)
        if error.code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            known = self._cluster.image.partition(topic, row.index)
            if known is not None:
                row.current_leader = LeaderIdAndEpoch(
                    leader_id=known.leader, leader_epoch=known.leader_epoch
                )

    def add_leaders(self, context: RequestContext, response: ProduceResponse) -> None:
        """Add the addresses of the leaders in refused rows."""
        if context.version < _FIRST_VERSION_WITH_LEADERS:
            return
        leaders = {
            row.current_leader.leader_id
            for topic in response.responses
            for row in topic.partition_responses
            if row.current_leader.leader_id >= 0
        }
        response.node_endpoints = [
            NodeEndpoint(node_id=node, host=host, port=port, rack=rack)
            for node, host, port, rack in self._cluster.nodes(context.listener)
            if node in leaders
        ]
