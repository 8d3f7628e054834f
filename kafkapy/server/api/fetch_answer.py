"""Responses to fetches, for the general path and the fast path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from kafkapy.replication.fetch_session import FetchContext, FetchPartition, FetchResult
from kafkapy.security.acls import CLUSTER_NAME, Operation, ResourceKind
from kafkapy.server.api.authorization import Action
from kafkapy.server.api.old_fetches import FIRST_VERSION_WITH_ZSTD, adapt_errors, convert_records
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.network.file_region_sender import hold_regions
from kafkapy.server.requests.turns import ROW_UNITS, ROWS_AT_ONCE, Work, chunks

if TYPE_CHECKING:
    from kafkapy.protocol.primitives import Records
    from kafkapy.server.api.cluster_view import ClusterView
    from kafkapy.server.counts.metrics import Metrics
    from kafkapy.server.replicas.replica_manager import ReplicaManager

FOLLOWER_ACTIONS: Final = (Action(Operation.CLUSTER_ACTION, ResourceKind.CLUSTER, CLUSTER_NAME),)
"""The actions that a follower's fetch needs."""
FIRST_VERSION_WITH_IDS: Final = 13
_LEADER_ERRORS: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


@dataclass(frozen=True)
class FetchResponses:
    """Creates the fetch responses of one broker. Metrics count the bytes for consumers only."""

    replicas: ReplicaManager
    metrics: Metrics
    cluster: ClusterView
    is_for_followers: bool = False

    def create(
        self, context: RequestContext, session: FetchContext, results: list[FetchResult]
    ) -> FetchResponse | Work[FetchResponse]:
        """The response with a session's rows; for many rows, or rows to convert, the work that
        creates it.
        """
        if context.version < FIRST_VERSION_WITH_ZSTD:
            replicas = self.replicas
            results = adapt_errors(replicas, context.version, results)
            work = convert_records(replicas, context.version, results)
            if work is not None:
                return self._create_converted(context, session, work)
        return self._create(context, session, results)

    def _create_converted(
        self, context: RequestContext, session: FetchContext, work: Work[list[FetchResult]]
    ) -> Work[FetchResponse]:
        results = yield from work
        response = self._create(context, session, results)
        return response if isinstance(response, FetchResponse) else (yield from response)

    def _create(
        self, context: RequestContext, session: FetchContext, results: list[FetchResult]
    ) -> FetchResponse | Work[FetchResponse]:
        topics: list[FetchableTopicResponse] = []
        leaders: set[int] = set()
        if len(results) > ROWS_AT_ONCE:
            # Requests that are handled between two slices may close the files.
            hold_regions([result.records for result in results])
            return self._create_in_slices(context, session, results)
        self._add_rows(context, session.choose(results), topics, leaders)
        if leaders:
            return self._response(context, session, topics, leaders)
        return FetchResponse(session_id=session.session_id, responses=topics)

    def _create_in_slices(
        self, context: RequestContext, session: FetchContext, results: list[FetchResult]
    ) -> Work[FetchResponse]:
        topics: list[FetchableTopicResponse] = []
        leaders: set[int] = set()
        for few in chunks(results):
            self._add_rows(context, session.choose(few), topics, leaders)
            yield ROW_UNITS // 2 * len(few)
        return self._response(context, session, topics, leaders)

    def _add_rows(
        self,
        context: RequestContext,
        results: Sequence[FetchResult],
        topics: list[FetchableTopicResponse],
        leaders: set[int],
    ) -> None:
        by_id = context.version >= FIRST_VERSION_WITH_IDS
        last: object = None
        if topics:
            last = topics[-1].topic_id if by_id else topics[-1].topic
        for result in results:
            wanted = result.wanted
            key = wanted.topic_id if by_id else wanted.topic
            if key != last or not topics:
                last = key
                topics.append(
                    FetchableTopicResponse(
                        topic=wanted.topic or "", topic_id=wanted.topic_id, partitions=[]
                    )
                )
            row = _row(result)
            if result.error:
                self.metrics.count_failed_fetch(wanted.topic or "")
                if context.version >= 16 and result.error in _LEADER_ERRORS:
                    self._add_leader(wanted, row, leaders)
            elif result.size_bytes and not self.is_for_followers:
                self.metrics.count_fetch(wanted.topic or "", result.size_bytes)
            topics[-1].partitions.append(row)

    def _response(
        self,
        context: RequestContext,
        session: FetchContext,
        topics: list[FetchableTopicResponse],
        leaders: set[int],
    ) -> FetchResponse:
        response = FetchResponse(session_id=session.session_id, responses=topics)
        if leaders:
            response.node_endpoints = [
                NodeEndpoint(node_id=node, host=host, port=port, rack=rack)
                for node, host, port, rack in self.cluster.nodes(context.listener)
                if node in leaders
            ]
        return response

    def _add_leader(self, wanted: FetchPartition, row: PartitionData, leaders: set[int]) -> None:
        known = self.cluster.image.partition(wanted.topic or "", wanted.partition)
        if known is not None and known.leader >= 0:
            row.current_leader = LeaderIdAndEpoch(
                leader_id=known.leader, leader_epoch=known.leader_epoch
            )
            leaders.add(known.leader)


def _row(result: FetchResult) -> PartitionData:
    row = PartitionData(
        partition_index=result.wanted.partition,
        error_code=result.error,
        high_watermark=result.high_watermark,
        last_stable_offset=result.last_stable_offset,
        log_start_offset=result.log_start_offset,
        preferred_read_replica=result.preferred_read_replica,
        aborted_transactions=None,
        records=cast("Records", result.records),  # a file region is passed by reference
    )
    if result.aborted_transactions is not None:
        row.aborted_transactions = [
            AbortedTransaction(producer_id=aborted.producer_id, first_offset=aborted.first_offset)
            for aborted in result.aborted_transactions
        ]
    if result.diverging_epoch is not None:
        epoch, end_offset = result.diverging_epoch
        row.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return row
