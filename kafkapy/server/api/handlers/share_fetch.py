"""ShareFetch (key 78), versions 1-2 (KIP-932).

Behaviour: applies the acknowledgements in the request, then acquires records of the session's
partitions for a limited time. While a fetch waits, its connection handles nothing else. The
response has rows for partitions with records, an error, or acknowledgements; in the first fetch of
a session, for all partitions. Version notes: v2 renews locks (KIP-1222), and has a strict limit of
records (KIP-1206).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.share_state import SharePartitionKey
from kafkapy.common.uuid import Uuid
from kafkapy.protocol.messages.share_fetch import (
    AcknowledgementBatch,
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from kafkapy.protocol.primitives import Records
from kafkapy.replication.shares.share_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    SessionKey,
    TopicIdIndex,
)
from kafkapy.server.api.cluster_view import ClusterView
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.api.share_requests import AckOutcome, ShareRequests, check_initial_request
from kafkapy.server.api.throttler import Throttler
from kafkapy.server.coordinators.share_fetches import (
    RECORD_LIMIT_MODE,
    ShareFetchParams,
    ShareFetchPartition,
    ShareRow,
)
from kafkapy.server.counts.metrics import Metrics
from kafkapy.server.requests.outcomes import Outcome, Pending
from kafkapy.server.requests.turns import CHECK_UNITS, ROW_UNITS, Work, as_work

Rows = dict[TopicIdIndex, PartitionData]


@dataclass(frozen=True)
class Handler:
    """Acquires records for members of share groups."""

    requests: ShareRequests
    cluster: ClusterView
    metrics: Metrics
    max_bytes: int
    throttler: Throttler

    def handle(
        self, context: RequestContext, request: ShareFetchRequest
    ) -> Work[Outcome[ShareFetchResponse]]:
        """Acknowledge, then acquire, or wait for records."""
        requests, epoch = self.requests, request.share_session_epoch
        key = requests.member(context, request.group_id, request.member_id)
        acks: dict[TopicIdIndex, Sequence[AcknowledgementBatch]] = {}
        wanted, forgotten = [], []
        for topic in request.topics:
            for row in topic.partitions:
                partition = TopicIdIndex(topic.topic_id, row.partition_index)
                wanted.append(partition)
                if row.acknowledgement_batches:
                    acks[partition] = row.acknowledgement_batches
                yield CHECK_UNITS
            yield 1
        check_initial_request(epoch, acks)
        limits = request.max_wait_ms, request.min_bytes, request.max_bytes, request.max_records
        if request.is_renew_ack and any(limits):
            raise ApiError(ErrorCode.INVALID_REQUEST, "A renewal must not fetch.")
        if epoch == FINAL_EPOCH:
            return (yield from self._close(context, request, key, acks))
        for data in request.forgotten_topics_data:
            forgotten += [TopicIdIndex(data.topic_id, index) for index in data.partitions]
            yield CHECK_UNITS + len(data.partitions)
        session = requests.open(context, key, epoch, wanted, forgotten)
        response = _PendingResponse(self, context, key.group_id)
        is_first = epoch == INITIAL_EPOCH
        plan = yield from self._plan(context, key, session.plan(), response.rows, is_first)
        yield from requests.acknowledge(
            context, key, acks, response.add_outcomes, may_renew=request.is_renew_ack
        )
        if not requests.shares.sessions.is_open(session):
            # The connection has closed between two slices. Its records have been released, and
            # nothing would release those of this fetch before their locks expire.
            plan = []
        params = self._params(context, request, key.member_id)
        is_parked = False
        refusals: dict[str, ErrorCode] = {}

        def refusal(wanted: ShareFetchPartition) -> ErrorCode:
            if not is_parked:
                return ErrorCode.NONE
            # The client chose how long the fetch waited; ACLs may have changed meanwhile.
            topic = wanted.topic
            if topic not in refusals:
                refusals[topic] = requests.refusal(context, key, topic)
            return refusals[topic]

        operation = requests.shares.fetches.fetch(params, plan, refusal, response.add_rows)
        is_parked = True
        pending = response.pending
        if pending.done:
            return (yield from as_work(pending.response))
        if operation is not None:
            purgatory = requests.shares.replicas.fetch_purgatory
            pending.on_abandon = lambda: purgatory.cancel(operation)
        return pending

    def _close(
        self,
        context: RequestContext,
        request: ShareFetchRequest,
        key: SessionKey,
        acks: dict[TopicIdIndex, Sequence[AcknowledgementBatch]],
    ) -> Work[Outcome[ShareFetchResponse]]:
        """Handle the last request of a session, which fetches nothing."""
        session = self.requests.shares.sessions.use(key, FINAL_EPOCH)
        response = _PendingResponse(self, context, key.group_id)
        response.add_rows([])
        yield from self.requests.acknowledge(
            context, key, acks, response.add_outcomes, may_renew=request.is_renew_ack
        )
        self.requests.close(session)
        pending = response.pending
        return (yield from as_work(pending.response)) if pending.done else pending

    def _params(
        self, context: RequestContext, request: ShareFetchRequest, member_id: str
    ) -> ShareFetchParams:
        max_bytes = min(request.max_bytes, self.max_bytes)
        quota_bytes = self.throttler.fetch_bytes_max(context)
        if quota_bytes is not None:
            max_bytes = min(max_bytes, quota_bytes)
        return ShareFetchParams(
            member_id,
            request.max_wait_ms,
            min(request.min_bytes, max_bytes),
            max_bytes,
            request.max_records,
            request.batch_size,
            request.share_acquire_mode == RECORD_LIMIT_MODE,
        )

    def _plan(
        self,
        context: RequestContext,
        key: SessionKey,
        partitions: Sequence[TopicIdIndex],
        rows: Rows,
        is_first: bool,
    ) -> Work[list[ShareFetchPartition]]:
        """The partitions that the caller may read. The others get rows with errors; in a session's
        first fetch, all partitions get rows.
        """
        plan = []
        for partition in partitions:
            yield ROW_UNITS
            try:
                topic = self.requests.topic(context, partition)
                if self.cluster.image.partition(topic, partition.partition) is None:
                    raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            except ApiError as refusal:
                _row(rows, partition).error_code = refusal.code
                continue
            plan.append(ShareFetchPartition(SharePartitionKey(key.group_id, *partition), topic))
            if is_first:
                _row(rows, partition)
        return plan

    def add_fetched(self, rows: Rows, fetched: Sequence[ShareRow], leaders: set[int]) -> None:
        """Add the records, and the errors, of a fetch."""
        for found in fetched:
            _, topic_id, index = found.wanted.key
            row = _row(rows, TopicIdIndex(topic_id, index))
            row.error_code = found.error
            if found.error is ErrorCode.NONE:
                row.records = cast("Records", found.records)
                row.acquired_records = [
                    AcquiredRecords(
                        first_offset=each.first,
                        last_offset=each.last,
                        delivery_count=each.delivery_count,
                    )
                    for each in found.acquired
                ]
                self.metrics.count_fetch(found.wanted.topic, len(found.records))
            elif found.error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                known = self.cluster.image.partition(found.wanted.topic, index)
                if known is not None:
                    row.current_leader = LeaderIdAndEpoch(
                        leader_id=known.leader, leader_epoch=known.leader_epoch
                    )
                    leaders.add(known.leader)

    def response(
        self, context: RequestContext, group_id: str, rows: Rows, leaders: set[int]
    ) -> Work[ShareFetchResponse]:
        """The response with these rows."""
        topics: dict[Uuid, ShareFetchableTopicResponse] = {}
        for partition, row in rows.items():
            topic_id = partition.topic_id
            topic = topics.get(topic_id)
            if topic is None:
                topic = ShareFetchableTopicResponse(topic_id=topic_id, partitions=[])
                topics[topic_id] = topic
            topic.partitions.append(row)
            yield CHECK_UNITS
        limits = self.requests.shares.configs.limits(group_id)
        nodes = self.cluster.nodes(context.listener) if leaders else []
        return ShareFetchResponse(
            acquisition_lock_timeout_ms=limits.lock_duration_ms,
            responses=list(topics.values()),
            node_endpoints=[
                NodeEndpoint(node_id=node, host=host, port=port, rack=rack)
                for node, host, port, rack in nodes
                if node in leaders
            ],
        )


class _PendingResponse:
    """The response of one fetch. It is complete when the acknowledgements are stored, and records
    are acquired or the wait is over.
    """

    def __init__(self, handler: Handler, context: RequestContext, group_id: str) -> None:
        self.pending: Pending[ShareFetchResponse] = Pending(blocks=True)
        self.rows: Rows = {}
        self._handler = handler
        self._context = context
        self._group_id = group_id
        self._leaders: set[int] = set()
        self._parts_left = 2

    def add_rows(self, found: list[ShareRow]) -> None:
        """Add the results of the fetch."""
        self._handler.add_fetched(self.rows, found, self._leaders)
        self._part_is_done()

    def add_outcomes(self, outcomes: dict[TopicIdIndex, AckOutcome]) -> None:
        """Add the outcomes of the acknowledgements, which are stored or refused."""
        for partition, outcome in outcomes.items():
            row = _row(self.rows, partition)
            row.acknowledge_error_code = outcome.error
            row.acknowledge_error_message = outcome.message
        self._part_is_done()

    def _part_is_done(self) -> None:
        self._parts_left -= 1
        if not self._parts_left:
            self.pending.complete(
                self._handler.response(self._context, self._group_id, self.rows, self._leaders)
            )


def _new_row(partition: TopicIdIndex) -> PartitionData:
    """A row with empty records: librdkafka does not accept null records."""
    return PartitionData(partition_index=partition.partition, records=b"")


def _row(rows: Rows, partition: TopicIdIndex) -> PartitionData:
    return rows.setdefault(partition, _new_row(partition))


def refuse(request: ShareFetchRequest, error: ApiError, version: int) -> ShareFetchResponse:
    """A top-level error with no rows."""
    return ShareFetchResponse(error_code=error.code, error_message=error.message)
