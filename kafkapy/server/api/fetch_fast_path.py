"""The fast path of follower fetches: decodes and encodes without message objects or a handler.

Hot file. A request with the same shape as earlier ones of its session (`protocol.fetch_shape`)
updates the follower's position in all partitions of the session, and then is answered or waits
(`replication.follower_wait`). Other requests take the general path of `Dispatcher`, which repeats
everything that was done here. Only responses with new records of a single partition are packed into
a template; others are built as on the general path. State per connection: the shape, the session's
operation in the purgatory, and whether ACLs allow the client to fetch as a follower.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkapy.common.errors import ApiError, ErrorCode, LogDirFailure
from kafkapy.protocol.fetch_shape import FetchShape
from kafkapy.protocol.headers import RequestHeader, encode_response
from kafkapy.protocol.messages.fetch import FetchRequest
from kafkapy.replication.delayed_fetch import FetchParams
from kafkapy.replication.fetch_session import (
    FetchContext,
    FetchPartition,
    FetchResult,
    FetchSession,
)
from kafkapy.replication.follower_wait import ChangeKind, FollowerWait
from kafkapy.replication.partition import READ_UNCOMMITTED, Partition
from kafkapy.server.api.authorization import are_allowed
from kafkapy.server.api.fetch_answer import FOLLOWER_ACTIONS
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.api.standing_decision import CachedDecision
from kafkapy.server.requests.outcomes import Pending
from kafkapy.server.requests.turns import run_now

if TYPE_CHECKING:
    from kafkapy.common.ports import Clock
    from kafkapy.metadata.acl_authorizer import AclAuthorizer
    from kafkapy.replication.fetch_session import FetchSessionCache
    from kafkapy.server.api.fetch_answer import FetchResponses
    from kafkapy.server.api.standing_decision import AuthenticatedConnection
    from kafkapy.server.counts.metrics import Metrics
    from kafkapy.server.replicas.fetch_reader import FetchReader
    from kafkapy.server.replicas.replica_manager import ReplicaManager
    from kafkapy.server.requests.request_handler import Parts


def is_follower_session_fetch(request: FetchRequest) -> bool:
    """Whether a fetch is sent by a follower, continues a session, and names one partition."""
    return (
        request.replica_state.replica_id >= 0
        and request.session_epoch > 0
        and len(request.topics) == 1
        and len(request.topics[0].partitions) == 1
        and request.isolation_level == READ_UNCOMMITTED
        and request.max_wait_ms > 0
        and request.min_bytes == 1  # with 0, no fetch waits
    )


class FetchFastPath:
    """Handles one connection's follower fetches. `context` is used for all of them."""

    __slots__ = ("_acl_decision", "_clock", "_context", "_correlation_id", "_max_bytes", "_params",
                 "_pending", "_reader", "_replicas", "_responses", "_sessions", "_shape",
                 "_wait", "times")  # fmt: skip

    def __init__(
        self,
        replicas: ReplicaManager,
        metrics: Metrics,
        reader: FetchReader,
        sessions: FetchSessionCache,
        clock: Clock,
        responses: FetchResponses,
        max_bytes: int,
        authorizer: AclAuthorizer | None,
        context: RequestContext,
        connection: AuthenticatedConnection,
    ) -> None:
        self._replicas = replicas
        self._reader = reader
        self._sessions = sessions
        self._clock = clock
        self._responses = responses
        self._max_bytes = max_bytes
        self._context = context
        self._correlation_id = 0  # of the fetch that is served or parked
        self._params: FetchParams
        self._pending: Pending[Parts] | None = None
        self._shape: FetchShape | None = None
        self.times = metrics.requests.by_name["Fetch"]
        self._wait: FollowerWait | None = None
        self._acl_decision: CachedDecision | None = None  # None: without an authorizer
        host = context.client_host
        if authorizer is not None:
            self._acl_decision = CachedDecision(
                authorizer,
                connection,
                lambda user: are_allowed(authorizer, user, host, FOLLOWER_ACTIONS),
            )

    def prepare(self, frame: memoryview, header: RequestHeader, request: FetchRequest) -> None:
        """Prepare for later requests like `request`, for which `is_follower_session_fetch` is true
        and which took the general path.
        """
        if self._shape is not None and self._shape.match(frame) is not None:
            return
        self.close()
        self._context.header, self._context.version = header, header.api_version
        self._shape = FetchShape.of(frame, header, request)
        self._params = FetchParams(
            request.replica_state.replica_id,
            request.max_wait_ms,
            request.min_bytes,
            min(request.max_bytes, self._max_bytes),
            request.isolation_level,
            header.api_version,
            listener=self._context.listener,
            replica_epoch=request.replica_state.replica_epoch,
        )

    def handle(self, frame: memoryview) -> Parts | Pending[Parts] | None:
        """Update the follower's position. Returns the whole response frame, or a `Pending` of it.
        Returns None if the request must take the general path, whose outcome is the same as without
        this call.
        """
        shape = self._shape
        matched = None if shape is None else shape.match(frame)
        if shape is None or matched is None:
            return None
        acl_decision = self._acl_decision
        if acl_decision is not None and not acl_decision.holds():
            return None
        session = self._sessions.get(shape.session_id)
        if session is None or session.epoch != matched.session_epoch:
            return None
        wait = self._get_wait(session)
        replicas = self._replicas
        if wait is None or replicas.quotas.leader.limit is not None:
            return None
        wanted = session.partitions.get((matched.topic_id, matched.partition))
        if wanted is None:
            return None
        wanted.update_request_params(*matched[4:])
        has_records = False
        for each in wait.changes():
            if each.kind is ChangeKind.REFUSAL:
                return None
            if each.kind is ChangeKind.RECORDS:
                has_records = True
        self._correlation_id = matched.correlation_id
        now_ms = self._clock.monotonic_ms()
        session.advance_epoch(now_ms)
        # Park the fetch before the positions are noted. They may advance the high watermark, after
        # which a coordinator may append a record, and that record must wake the fetch.
        pending = None if has_records else self._park(wait, now_ms)
        epoch = self._params.replica_epoch
        for partition, high_watermark in wait.record_positions(now_ms):
            replicas.on_follower_fetch(partition, wait.broker_id, high_watermark, epoch)
        if pending is None:
            return self._response()
        return pending.response if pending.done else pending

    def _get_wait(self, session: FetchSession) -> FollowerWait | None:
        """The session's watched operation; None while one of its partitions is not hosted here."""
        wait = self._wait
        if wait is not None and wait.belongs_to(session):
            return wait
        self.close()
        replicas = self._replicas
        partitions = []
        for wanted in session.partitions.values():
            partition = replicas.partitions.get(wanted.topic or "", {}).get(wanted.partition)
            if partition is None or partition.topic_id != wanted.topic_id:
                return None
            partitions.append(partition)
        wait = FollowerWait(session, partitions, self._params.replica_id, self._on_complete)
        keys = [partition.topic_partition for partition in partitions]
        replicas.fetch_purgatory.register(wait, [*keys, wait.broker_id])
        self._wait = wait
        return wait

    def _park(self, wait: FollowerWait, now_ms: int) -> Pending[Parts]:
        wait_ms = self._reader.wait_ms(self._params, len(wait.pairs), now_ms)
        pending: Pending[Parts] = Pending(blocks=True)
        self._pending = pending
        self._replicas.fetch_purgatory.begin_wait(wait, now_ms + wait_ms)
        return pending

    def _on_complete(self) -> None:
        pending, self._pending = self._pending, None
        if pending is None:
            return
        acl_decision = self._acl_decision
        if acl_decision is None or acl_decision.holds():
            pending.complete(self._response())
        else:  # the right ended while the fetch waited
            pending.complete(self._refusal())

    def _refusal(self) -> Parts:
        wait = self._wait
        assert wait is not None
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        partitions = wait.session.partitions.values()  # in the order in which they are read next
        return self._encoded_response([FetchResult(wanted, error) for wanted in partitions])

    def _response(self) -> Parts:
        wait = self._wait
        assert wait is not None
        news = wait.changes()
        if len(news) == 1 and news[0].kind is not ChangeKind.REFUSAL:
            response = self._records_response(wait.session, news[0].partition, news[0].wanted)
            if response is not None:
                return response
        return self._encoded_response(
            self._reader.read_again(self._params, wait.in_session_order(news))
        )

    def _encoded_response(self, results: list[FetchResult]) -> Parts:
        """The response with these rows, as the general path builds it."""
        assert self._wait is not None
        context = FetchContext([], self._wait.session, incremental=True)
        message = run_now(self._responses.create(self._context, context, results))
        header = self._context.header
        return encode_response(message, header.api_key, header.api_version, self._correlation_id)

    def _records_response(
        self, session: FetchSession, partition: Partition, wanted: FetchPartition
    ) -> Parts | None:
        """The response with one partition's new records; None if the response needs more than
        that.
        """
        log, shape = partition.log, self._shape
        assert shape is not None
        if self._replicas.quotas.leader.limit is not None:  # set while the fetch was parked
            return None
        try:
            records = log.read_tail(
                wanted.fetch_offset, min(wanted.max_bytes, self._params.max_bytes)
            )
        except (ApiError, LogDirFailure):
            return None  # `read_again` gets the same error, and handles it
        if not isinstance(records, bytes):
            return None
        high_watermark, log_start_offset = log.high_watermark, log.log_start_offset
        wanted.maybe_update_response_data(high_watermark, log_start_offset)
        session.move_to_end(wanted)
        return shape.response(
            self._correlation_id, wanted.topic_id, wanted.partition, high_watermark,
            log.last_stable_offset, log_start_offset, records,
        )  # fmt: skip

    def close(self) -> None:
        """Stop watching the session."""
        if self._wait is not None:
            self._replicas.fetch_purgatory.cancel(self._wait)
            self._wait = None
            self._pending = None
