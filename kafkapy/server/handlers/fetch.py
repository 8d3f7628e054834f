"""Fetch (key 1), versions 4-17.

Behaviour: full and incremental sessions (KIP-227), byte budgets, min bytes and max wait,
read_committed, leader epoch fencing, truncate-on-fetch, preferred read replicas. While a fetch is
parked its connection handles nothing else, as in Kafka. A consumer beyond a quota gets no rows.
Not done: down-conversion for versions below 4, tiered storage. Version notes: v11 reads from
followers (KIP-392); v12 diverging epochs; v13 topic ids; v15 replica state; v16 node endpoints
(KIP-951).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

from kafkapy.common.acls import CLUSTER_NAME, Operation, ResourceKind
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.uuid import ZERO_UUID
from kafkapy.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from kafkapy.replication.delayed_fetch import READS_FOLLOWERS_VERSION, FetchParams
from kafkapy.replication.fetch_session import (
    NO_SESSION,
    FetchContext,
    FetchPartition,
    FetchResult,
    PartitionKey,
)
from kafkapy.server.authorization import Need, is_allowed
from kafkapy.server.request import Pending, RequestContext

if TYPE_CHECKING:
    from kafkapy.protocol.primitives import Records
    from kafkapy.server.throttler import FetchMeter

NEEDS_OF_FOLLOWER = (Need(Operation.CLUSTER_ACTION, ResourceKind.CLUSTER, CLUSTER_NAME),)
"""With these a follower may read all that it follows."""
_NONE_REFUSED: list[FetchResult] = []
_LEADER_ERRORS = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def handle(context: RequestContext, request: FetchRequest) -> Any:
    """Read what the session's plan says, or park until there is enough."""
    broker = context.broker
    version = context.version
    replica_id = request.replica_state.replica_id if version >= 15 else request.replica_id
    session = broker.fetch_sessions.open(
        request.session_id,
        request.session_epoch,
        _wanted(context, request),
        _forgotten(request, version),
        uses_topic_ids=version >= 13,
        privileged=replica_id >= 0,
        now_ms=broker.clock.monotonic_ms(),
    )
    max_bytes, min_bytes = min(request.max_bytes, broker.fetch_max_bytes), request.min_bytes
    meter, respond = None, answer
    if broker.client_quotas.are_set and replica_id < 0:
        meter = broker.throttler.meter(context)
        respond = partial(_metered, meter)
        if meter.bytes_max is not None:
            max_bytes = min(max_bytes, meter.bytes_max)
            min_bytes = min(min_bytes, max_bytes)
    params = FetchParams(
        replica_id,
        request.max_wait_ms,
        min_bytes,
        max_bytes,
        request.isolation_level,
        version,
        request.rack_id if version >= READS_FOLLOWERS_VERSION else "",
        context.listener,
    )
    plan, refused = session.plan, _NONE_REFUSED
    if broker.authorizer is not None:
        plan, refused = _readable(context, session.plan, replica_id)
        if not plan:
            return respond(context, session, refused)
    pending = Pending(blocks=True)
    operation = broker.fetcher.fetch(
        params,
        plan,
        lambda results: pending.complete(
            respond(context, session, [*results, *refused] if refused else results)
        ),
    )
    if pending.done:
        return pending.response
    if meter is not None:
        meter.park()
    if operation is not None:
        pending.on_abandon = lambda: broker.replicas.fetch_purgatory.cancel(operation)
    return pending


def _readable(
    context: RequestContext, plan: list[FetchPartition], replica_id: int
) -> tuple[list[FetchPartition], list[FetchResult]]:
    """What of a plan may be read, and the rows of the rest. Sessions keep partitions, so all are
    looked at each time; of an unknown id's topic nothing is known yet."""
    is_follower = replica_id >= 0
    if is_follower and all(is_allowed(context, *need) for need in NEEDS_OF_FOLLOWER):
        return plan, []
    readable, refused = [], []
    for wanted in plan:
        topic = wanted.topic
        if topic is None or (
            not is_follower and is_allowed(context, Operation.READ, ResourceKind.TOPIC, topic)
        ):
            readable.append(wanted)
        else:
            refused.append(FetchResult(wanted, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    return readable, refused


def _wanted(context: RequestContext, request: FetchRequest) -> list[FetchPartition]:
    names = context.broker.metadata.image.topic_names_by_id
    wanted = []
    by_id = context.version >= 13
    for topic in request.topics:
        topic_id = topic.topic_id if by_id else ZERO_UUID
        name = names.get(topic_id) if by_id else topic.topic
        for row in topic.partitions:
            wanted.append(
                FetchPartition(
                    name,
                    topic_id,
                    row.partition,
                    row.fetch_offset,
                    row.partition_max_bytes,
                    row.current_leader_epoch,
                    row.last_fetched_epoch,
                    row.log_start_offset,
                )
            )
    return wanted


def _forgotten(request: FetchRequest, version: int) -> list[PartitionKey]:
    return [
        (topic.topic_id if version >= 13 else topic.topic, partition)
        for topic in request.forgotten_topics_data
        for partition in topic.partitions
    ]


def _metered(
    meter: FetchMeter, context: RequestContext, session: FetchContext, results: list[FetchResult]
) -> FetchResponse:
    """The rows; or none, and as if none had been read, where the client must pause."""
    pause_ms = meter.pause_ms(sum(result.size_bytes for result in results))
    if not pause_ms:
        return answer(context, session, results)
    if session.incremental:
        session_id = session.session_id
    else:
        session_id = NO_SESSION
        context.broker.fetch_sessions.forget(session)
    return FetchResponse(throttle_time_ms=pause_ms, session_id=session_id, responses=[])


def answer(
    context: RequestContext, session: FetchContext, results: list[FetchResult]
) -> FetchResponse:
    """What a session's rows come to."""
    broker = context.broker
    topics: list[FetchableTopicResponse] = []
    last: object = None
    leaders: set[int] = set()
    for result in session.choose(results):
        wanted = result.wanted
        key = wanted.topic_id if context.version >= 13 else wanted.topic
        if key != last or not topics:
            last = key
            topics.append(
                FetchableTopicResponse(
                    topic=wanted.topic or "", topic_id=wanted.topic_id, partitions=[]
                )
            )
        row = _row(result)
        if result.error:
            broker.metrics.fetch_failed(wanted.topic or "")
            if context.version >= 16 and result.error in _LEADER_ERRORS:
                _add_leader(context, wanted, row, leaders)
        elif result.size_bytes:
            broker.metrics.fetched(wanted.topic or "", result.size_bytes)
        topics[-1].partitions.append(row)
    response = FetchResponse(session_id=session.session_id, responses=topics)
    if leaders:
        response.node_endpoints = [
            NodeEndpoint(node_id=node, host=host, port=port, rack=rack)
            for node, host, port, rack in broker.nodes(context.listener)
            if node in leaders
        ]
    return response


def _row(result: FetchResult) -> PartitionData:
    row = PartitionData(
        partition_index=result.wanted.partition,
        error_code=result.error,
        high_watermark=result.high_watermark,
        last_stable_offset=result.last_stable_offset,
        log_start_offset=result.log_start_offset,
        preferred_read_replica=result.preferred_read_replica,
        aborted_transactions=None,
        records=cast("Records", result.records),  # a region goes by reference, to the connection
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


def _add_leader(
    context: RequestContext, wanted: FetchPartition, row: PartitionData, leaders: set[int]
) -> None:
    known = context.broker.metadata.image.partition(wanted.topic or "", wanted.partition)
    if known is not None and known.leader >= 0:
        row.current_leader = LeaderIdAndEpoch(
            leader_id=known.leader, leader_epoch=known.leader_epoch
        )
        leaders.add(known.leader)


def refuse(request: FetchRequest, error: ApiError, version: int) -> FetchResponse:
    """A top-level error with no rows."""
    return FetchResponse(error_code=error.code, session_id=0, responses=[])
