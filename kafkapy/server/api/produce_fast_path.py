"""The fast path of produce requests: decodes and encodes without message objects or a handler.

Hot file. A request with the same shape as earlier ones of its connection is appended as in the
handler (`produce_append`), and its response is packed into a template. Other requests take the
general path of `Dispatcher`, before this path has had an effect: another shape, a client that ACLs
refuse or that has a request quota, a transaction that must be verified, records that another thread
must prepare. With acks=all the response waits in the purgatory, as on the general path. State per
connection: the shape, the last topic, and cached decisions about ACLs and quotas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.uuid import ZERO_UUID
from kafkapy.metadata.client_quotas import QuotaKind
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.headers import RequestHeader, encode_response
from kafkapy.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from kafkapy.protocol.produce_shape import ProduceShape
from kafkapy.record.batch_header import transactional_header
from kafkapy.record.batch_rules import NeedsThread
from kafkapy.replication.delayed_produce import ProduceWait
from kafkapy.server.api.authorization import are_allowed
from kafkapy.server.api.authorization_rules import produce_actions
from kafkapy.server.api.produce_append import (
    append,
    respond_after_waits,
    unverified,
    wait_of,
    writing,
)
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.api.standing_decision import CachedDecision
from kafkapy.server.quotas.client_quotas import Client, client_named
from kafkapy.server.requests.outcomes import (
    CLOSE_CONNECTION,
    NO_RESPONSE,
    CloseConnection,
    NoResponse,
    Pending,
)
from kafkapy.storage.log_append import LogAppendInfo

if TYPE_CHECKING:
    from kafkapy.common.ports import Clock
    from kafkapy.metadata.acl_authorizer import AclAuthorizer
    from kafkapy.server.api.cluster_view import ClusterView
    from kafkapy.server.api.produce_answer import ProduceResponses
    from kafkapy.server.api.throttler import Throttler
    from kafkapy.server.coordinators.transaction_verifier import TransactionVerifier
    from kafkapy.server.counts.metrics import Metrics
    from kafkapy.server.replicas.replica_manager import ReplicaManager
    from kafkapy.server.requests.request_handler import Caller, Parts


class ProduceFastPath:
    """Handles one connection's produce requests to one topic. `context` is used for every request
    of the shape.
    """

    __slots__ = ("_acl_decision", "_authorizer", "_client_id", "_clock", "_cluster", "_connection",
                 "_context", "_last_topic", "_metrics", "_no_produce_quota", "_no_request_quota",
                 "_quotas", "_replicas", "_responses", "_shape", "_throttler", "_transactional_id",
                 "_verifier", "times")  # fmt: skip

    def __init__(
        self,
        replicas: ReplicaManager,
        metrics: Metrics,
        clock: Clock,
        verifier: TransactionVerifier,
        responses: ProduceResponses,
        cluster: ClusterView,
        throttler: Throttler,
        authorizer: AclAuthorizer | None,
        context: RequestContext,
        connection: Caller,
    ) -> None:
        self._replicas = replicas
        self._metrics = metrics
        self._clock = clock
        self._verifier = verifier
        self._responses = responses
        self._cluster = cluster
        self._throttler = throttler
        self._quotas = throttler.quotas
        self._authorizer = authorizer
        self._context = context
        self._connection = connection
        self._client_id: str | None = None
        self._last_topic: str | None = None
        self._shape: ProduceShape | None = None
        self._transactional_id: str | None = None
        self.times = metrics.requests.by_name["Produce"]
        self._acl_decision: CachedDecision | None = None  # None: without an authorizer
        self._no_produce_quota: CachedDecision
        self._no_request_quota: CachedDecision

    def prepare(self, frame: memoryview, header: RequestHeader, request: ProduceRequest) -> None:
        """Prepare for later requests, if `request` on the general path has the same single topic as
        the request before it.
        """
        topics = request.topic_data
        topic = topics[0].name if len(topics) == 1 else None  # None too for an unknown id
        repeats = topic is not None and topic == self._last_topic
        self._last_topic = topic
        if not repeats or (self._shape is not None and self._shape.match(frame) is not None):
            return
        self._shape = ProduceShape.of(frame, header, request)
        if self._shape is not None:
            self._context.header, self._context.version = header, header.api_version
            self._client_id = header.client_id
            self._transactional_id = request.transactional_id
            self._reset_decisions()

    def _reset_decisions(self) -> None:
        """Reset the decisions about this connection's client, for the current shape."""
        context, shape = self._context, self._shape
        assert shape is not None
        authorizer = self._authorizer
        self._no_produce_quota = self._no_quota_decision(QuotaKind.PRODUCE)
        self._no_request_quota = self._no_quota_decision(QuotaKind.REQUEST)
        if authorizer is not None:
            actions = produce_actions(shape.topic, self._transactional_id)
            self._acl_decision = CachedDecision(
                authorizer,
                self._connection,
                lambda user: are_allowed(authorizer, user, context.client_host, actions),
            )

    def _no_quota_decision(self, kind: QuotaKind) -> CachedDecision:
        """The decision whether the client has no quota of this kind."""
        find, client_id = self._quotas.by_kind[kind].table.find, self._client_id
        return CachedDecision(
            self._quotas,
            self._connection,
            lambda user: find(*client_named(user, client_id)) is None,
        )

    def close(self) -> None:
        """Do nothing at the end of the connection, which abandons its waiting operations."""

    def handle(
        self, frame: memoryview
    ) -> bytes | Parts | Pending[bytes] | NoResponse | CloseConnection | None:
        """Append the records. Returns the whole response frame, a `Pending` of it, `NO_RESPONSE` or
        `CLOSE_CONNECTION`. Returns None, without an effect, if the request must take the general
        path.
        """
        shape = self._shape
        if shape is None:
            return None
        matched = shape.match(frame)
        if matched is None:
            return None
        correlation_id, index, records = matched
        topic_id = shape.topic_id
        if topic_id is not None and self._cluster.image.topic_name(None, topic_id) != shape.topic:
            return None
        acl_decision = self._acl_decision
        if acl_decision is not None and not acl_decision.holds():
            return None
        charged_client: Client | None = None
        if self._quotas.are_set:
            if not self._no_request_quota.holds():
                return None
            if not self._no_produce_quota.holds():
                charged_client = client_named(self._connection.principal, self._client_id)
        if transactional_header(records) is not None and self._needs_verification(index, records):
            return None
        acks = shape.acks
        try:
            info, partition = append(
                self._replicas, self._metrics, shape.topic, index, records, acks, shape.version,
                self._client_id, None, topic_id,
            )  # fmt: skip
        except ApiError as error:
            return self._refusal(correlation_id, index, error, charged_client, len(frame))
        except NeedsThread:
            return None
        if acks == -1:
            wait = wait_of(info, partition)
            if wait is not None:
                return self._wait(correlation_id, wait, info, charged_client, len(frame))
        pause_ms = self._charge(charged_client, len(frame))
        if acks == 0:
            return NO_RESPONSE
        return shape.response(
            correlation_id, index, 0, info.first_offset, info.log_append_time,
            info.log_start_offset, pause_ms,
        )  # fmt: skip

    def _charge(self, client: Client | None, size_bytes: int) -> int:
        if client is None:
            return 0
        return self._throttler.charge_produce(self._connection, client, size_bytes)

    def _needs_verification(self, index: int, records: memoryview) -> bool:
        """Whether a transactional batch is refused, or must wait for the coordinator."""
        shape = self._shape
        assert shape is not None
        found = writing(shape.topic, index, records, shape.version)
        if found is None:
            return False
        try:
            return bool(unverified(self._verifier, shape.acks, self._transactional_id, (found,)))
        except ApiError:
            return True

    def _refusal(
        self,
        correlation_id: int,
        index: int,
        error: ApiError,
        charged_client: Client | None,
        size_bytes: int,
    ) -> Parts | CloseConnection:
        shape = self._shape
        assert shape is not None
        row = PartitionProduceResponse(index=index)
        self._responses.refuse_row(shape.topic, row, error)
        if shape.acks == 0:
            return CLOSE_CONNECTION
        topic = TopicProduceResponse(
            name=shape.topic, topic_id=shape.topic_id or ZERO_UUID, partition_responses=[row]
        )
        response = ProduceResponse(responses=[topic])
        self._responses.add_leaders(self._context, response)
        response.throttle_time_ms = self._charge(charged_client, size_bytes)
        return encode_response(response, ApiKey.PRODUCE, shape.version, correlation_id)

    def _wait(
        self,
        correlation_id: int,
        wait: ProduceWait,
        info: LogAppendInfo,
        charged_client: Client | None,
        size_bytes: int,
    ) -> Pending[bytes]:
        shape, index = self._shape, wait.partition.topic_partition.partition
        assert shape is not None

        def respond() -> bytes:
            offset = info.first_offset if wait.error is ErrorCode.NONE else -1
            return shape.response(
                correlation_id, index, wait.error, offset, info.log_append_time,
                info.log_start_offset, self._charge(charged_client, size_bytes),
            )  # fmt: skip

        return respond_after_waits(self._replicas, self._clock, shape.timeout_ms, [wait], respond)
