"""Fetch (key 1), versions 0-18.

Behaviour: full and incremental sessions (KIP-227), byte budgets, min bytes and max wait,
read_committed, leader epoch fencing, truncate-on-fetch, preferred read replicas. While a fetch
waits, its connection handles nothing else, as in Kafka. A consumer beyond a quota gets no rows. Not
done: tiered storage. Version notes: v0-3 get message sets of older formats, v0-9 no topics with
zstd (`old_fetches`); v11 reads from followers (KIP-392); v12 diverging epochs; v13 topic ids; v15
replica state; v16 node endpoints (KIP-951).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.ports import Clock
from kafkapy.common.uuid import ZERO_UUID
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.messages.fetch import FetchPartition as WantedRow
from kafkapy.protocol.messages.fetch import (
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from kafkapy.replication.delayed_fetch import FETCH_FROM_FOLLOWER_VERSION, FetchParams
from kafkapy.replication.fetch_session import (
    NO_SESSION,
    FetchContext,
    FetchPartition,
    FetchResult,
    FetchSessionCache,
    PartitionKey,
)
from kafkapy.security.acls import Operation, ResourceKind
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.api.fetch_answer import FIRST_VERSION_WITH_IDS, FOLLOWER_ACTIONS, FetchResponses
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.api.throttler import FetchMeter, Throttler
from kafkapy.server.replicas.fetch_reader import FetchReader
from kafkapy.server.replicas.replica_manager import ReplicaManager
from kafkapy.server.requests.outcomes import Outcome, Pending
from kafkapy.server.requests.turns import ROW_UNITS, ROWS_AT_ONCE, Work, as_work, chunks

_NONE_REFUSED: list[FetchResult] = []


@dataclass(frozen=True)
class Handler:
    """Reads records for consumers and followers."""

    replicas: ReplicaManager
    reader: FetchReader
    sessions: FetchSessionCache
    metadata: MetadataCache
    clock: Clock
    authorization: Authorization
    throttler: Throttler
    responses: FetchResponses
    follower_responses: FetchResponses
    max_bytes: int

    def handle(
        self,
        context: RequestContext,
        request: FetchRequest,
        wanted: dict[PartitionKey, FetchPartition] | None = None,
    ) -> Outcome[FetchResponse] | Work[Outcome[FetchResponse]]:
        """Read partitions, or wait for enough bytes. `wanted` are the rows of a large request."""
        if wanted is None:
            wanted = {}
            for topic in request.topics:
                if len(wanted) + len(topic.partitions) + len(request.topics) > ROWS_AT_ONCE:
                    return self._handle_in_slices(context, request)
                self._add_wanted(context, topic, topic.partitions, wanted)
        version = context.version
        replica_id = request.replica_state.replica_id if version >= 15 else request.replica_id
        session = self.sessions.open(
            request.session_id,
            request.session_epoch,
            list(wanted.values()),
            _forgotten_partitions(request, version),
            uses_topic_ids=version >= FIRST_VERSION_WITH_IDS,
            privileged=replica_id >= 0 and self._is_authorized_broker(context),
            now_ms=self.clock.monotonic_ms(),
        )
        responses = self.responses if replica_id < 0 else self.follower_responses
        meter, respond = None, responses.create
        if self.throttler.quotas.are_set and replica_id < 0:
            meter = self.throttler.meter(context)
            respond = partial(self._metered_response, meter)
        params = self._params(context, request, replica_id, meter)
        plan, refused = session.plan, _NONE_REFUSED
        if version >= FIRST_VERSION_WITH_IDS:
            self._resolve(plan)
        if self.authorization.authorizer is not None:
            plan, refused = self._split_readable(context, plan, replica_id)
            if not plan:
                return respond(context, session, refused)
        pending: Pending[FetchResponse] = Pending(blocks=True)
        is_parked = False

        def complete(results: list[FetchResult]) -> None:
            if is_parked and self.authorization.authorizer is not None:
                # The client chose how long the fetch waited; ACLs may have changed meanwhile.
                results = self._refuse_unreadable(context, results, replica_id)
            rows = [*results, *refused] if refused else results
            pending.complete(respond(context, session, rows))

        if len(plan) > ROWS_AT_ONCE:
            is_parked = True  # other requests are handled between its slices
            work = self._read_in_slices(params, plan, complete, pending, meter)
            return work if meter is None else meter.measured(work)
        operation = self.reader.fetch(params, plan, complete)
        if pending.done:
            return pending.response
        is_parked = True
        if meter is not None:
            meter.park()
        if operation is not None:
            pending.on_abandon = lambda: self.replicas.fetch_purgatory.cancel(operation)
        return pending

    def _handle_in_slices(
        self, context: RequestContext, request: FetchRequest
    ) -> Work[Outcome[FetchResponse]]:
        """Handle a request with many rows, in slices."""
        wanted: dict[PartitionKey, FetchPartition] = {}
        for topic in request.topics:
            for rows in chunks(topic.partitions):
                self._add_wanted(context, topic, rows, wanted)
                yield 2 * len(rows)
            yield 1
        yield len(wanted) // ROW_UNITS
        return (yield from as_work(self.handle(context, request, wanted)))

    def _params(
        self,
        context: RequestContext,
        request: FetchRequest,
        replica_id: int,
        meter: FetchMeter | None,
    ) -> FetchParams:
        version = context.version
        max_bytes = min(request.max_bytes, self.max_bytes)
        if meter is not None and meter.bytes_max is not None:
            max_bytes = min(max_bytes, meter.bytes_max)
        # Hot: a comparison costs less than a call of `min`.
        min_bytes = request.min_bytes if request.min_bytes < max_bytes else max_bytes
        return FetchParams(
            replica_id,
            request.max_wait_ms,
            min_bytes,
            max_bytes,
            request.isolation_level,
            version,
            request.rack_id if version >= FETCH_FROM_FOLLOWER_VERSION else "",
            context.listener,
            request.replica_state.replica_epoch,
        )

    def _read_in_slices(
        self,
        params: FetchParams,
        plan: list[FetchPartition],
        complete: Callable[[list[FetchResult]], None],
        pending: Pending[FetchResponse],
        meter: FetchMeter | None,
    ) -> Work[Outcome[FetchResponse]]:
        """Read a plan with many rows, or wait until there are enough bytes."""
        results = yield from self.reader.read_in_slices(params, plan)
        if results is not None:
            complete(results)
            return (yield from as_work(pending.response))
        operation = self.reader.fetch(params, plan, complete)
        if meter is not None:
            meter.park()
        if operation is not None:
            pending.on_abandon = lambda: self.replicas.fetch_purgatory.cancel(operation)
        return pending

    def _split_readable(
        self, context: RequestContext, plan: list[FetchPartition], replica_id: int
    ) -> tuple[list[FetchPartition], list[FetchResult]]:
        """The part of a plan that the caller may read, and the refused rows. Sessions keep
        partitions, so all are authorized with each request. A row with an unknown id stays in the
        plan: its error will be UNKNOWN_TOPIC_ID, and nothing is read for it.
        """
        may_read = self._reader_rights(context, replica_id)
        readable, refused = [], []
        for wanted in plan:
            if may_read(wanted.topic):
                readable.append(wanted)
            else:
                refused.append(FetchResult(wanted, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        return readable, refused

    def _refuse_unreadable(
        self, context: RequestContext, results: list[FetchResult], replica_id: int
    ) -> list[FetchResult]:
        may_read = self._reader_rights(context, replica_id)
        return [
            result
            if may_read(result.wanted.topic)
            else FetchResult(result.wanted, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            for result in results
        ]

    def _is_authorized_broker(self, context: RequestContext) -> bool:
        return all(self.authorization.is_allowed(context, *action) for action in FOLLOWER_ACTIONS)

    def _reader_rights(
        self, context: RequestContext, replica_id: int
    ) -> Callable[[str | None], bool]:
        """A function that returns whether the caller may read a topic now. Each topic is checked
        once.
        """
        if replica_id >= 0:
            is_authorized_broker = self._is_authorized_broker(context)
            return lambda topic: is_authorized_broker
        rights: dict[str | None, bool] = {None: True}

        def may_read(topic: str | None) -> bool:
            right = rights.get(topic)
            if right is None:
                assert topic is not None
                right = self.authorization.is_allowed(
                    context, Operation.READ, ResourceKind.TOPIC, topic
                )
                rights[topic] = right
            return right

        return may_read

    def _resolve(self, plan: list[FetchPartition]) -> None:
        """Set the names of a session's rows whose ids were unknown at its last request."""
        image = self.metadata.image
        for wanted in plan:
            if wanted.topic is None:
                wanted.topic = image.topic_name(None, wanted.topic_id)

    def _add_wanted(
        self,
        context: RequestContext,
        topic: FetchTopic,
        rows: Sequence[WantedRow],
        wanted: dict[PartitionKey, FetchPartition],
    ) -> None:
        """Add rows of the request. If a partition is named several times, only the last row counts,
        as in Kafka. Otherwise each row would be read, and keep a file open.
        """
        by_id = context.version >= FIRST_VERSION_WITH_IDS
        topic_id = topic.topic_id if by_id else ZERO_UUID
        image = self.metadata.image
        name = image.topic_name(None, topic_id) if by_id else topic.topic
        key = topic_id if by_id else topic.topic
        for row in rows:
            wanted[key, row.partition] = FetchPartition(
                name,
                topic_id,
                row.partition,
                row.fetch_offset,
                row.partition_max_bytes,
                row.current_leader_epoch,
                row.last_fetched_epoch,
                row.log_start_offset,
            )

    def _metered_response(
        self,
        meter: FetchMeter,
        context: RequestContext,
        session: FetchContext,
        results: list[FetchResult],
    ) -> FetchResponse | Work[FetchResponse]:
        """The response with the rows. If the client must pause, it has no rows, as if nothing had
        been read.
        """
        pause_ms = meter.record_and_get_pause_ms(sum(result.size_bytes for result in results))
        if not pause_ms:
            return self.responses.create(context, session, results)
        if session.incremental:
            session_id = session.session_id
        else:
            session_id = NO_SESSION
            self.sessions.remove(session)
        return FetchResponse(throttle_time_ms=pause_ms, session_id=session_id, responses=[])


def _forgotten_partitions(request: FetchRequest, version: int) -> list[PartitionKey]:
    return [
        (topic.topic_id if version >= FIRST_VERSION_WITH_IDS else topic.topic, partition)
        for topic in request.forgotten_topics_data
        for partition in topic.partitions
    ]


def refuse(request: FetchRequest, error: ApiError, version: int) -> FetchResponse:
    """A top-level error with no rows."""
    return FetchResponse(error_code=error.code, session_id=0, responses=[])
