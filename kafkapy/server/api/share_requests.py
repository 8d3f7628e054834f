"""Acknowledgements in ShareFetch and ShareAcknowledge: their checks, and their outcomes by row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, Protocol

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.share_state import SharePartitionKey
from kafkapy.replication.shares.records_in_flight import AckType
from kafkapy.replication.shares.share_partition import Acknowledgement
from kafkapy.replication.shares.share_sessions import (
    INITIAL_EPOCH,
    SessionKey,
    ShareSession,
    TopicIdIndex,
)
from kafkapy.security.acls import Operation, ResourceKind
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.cluster.cluster_features import ClusterFeatures
from kafkapy.server.coordinators.share_setup import Shares
from kafkapy.server.requests.turns import ROW_UNITS, Work

_TYPES: Final = frozenset(AckType)
_BATCH_UNITS: Final = 3
_TYPES_A_UNIT: Final = 50


class AckRow(Protocol):
    """A batch of acknowledgements on the wire."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class AckOutcome(NamedTuple):
    """The outcome of a partition's acknowledgements."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(frozen=True)
class ShareRequests:
    """The common steps of ShareFetch and ShareAcknowledge."""

    shares: Shares
    features: ClusterFeatures
    authorization: Authorization

    def member(
        self, context: RequestContext, group_id: str | None, member_id: str | None
    ) -> SessionKey:
        """The member that sends a request.

        Raises:
            ApiError: UNSUPPORTED_VERSION, INVALID_REQUEST or GROUP_AUTHORIZATION_FAILED.
        """
        if not self.features.has_share_groups:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION)
        if not group_id or not member_id:
            raise ApiError(ErrorCode.INVALID_REQUEST, "GroupId and MemberId must be set.")
        self.authorization.require(context, Operation.READ, ResourceKind.GROUP, group_id)
        return SessionKey(group_id, member_id)

    def topic(self, context: RequestContext, partition: TopicIdIndex) -> str:
        """The name of a partition's topic.

        Raises:
            ApiError: UNKNOWN_TOPIC_ID or TOPIC_AUTHORIZATION_FAILED.
        """
        name = self.shares.metadata.image.topic_names_by_id.get(partition.topic_id)
        if name is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
        self.authorization.require(context, Operation.READ, ResourceKind.TOPIC, name)
        return name

    def refusal(self, context: RequestContext, key: SessionKey, topic: str) -> ErrorCode:
        """TOPIC_AUTHORIZATION_FAILED if the caller may no longer read the topic or the group, else
        NONE. Clients do not expect GROUP_AUTHORIZATION_FAILED in a partition's row.
        """
        is_allowed = self.authorization.is_allowed
        if is_allowed(context, Operation.READ, ResourceKind.GROUP, key.group_id) and is_allowed(
            context, Operation.READ, ResourceKind.TOPIC, topic
        ):
            return ErrorCode.NONE
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED

    def open(
        self,
        context: RequestContext,
        key: SessionKey,
        epoch: int,
        wanted: Iterable[TopicIdIndex],
        forgotten: Iterable[TopicIdIndex],
    ) -> ShareSession:
        """Open or continue the session of a fetch. A session that the fetch opens ends with the
        connection.

        Raises:
            ApiError: the epoch is not the next one, or there are too many sessions.
        """
        caller = context.caller
        session = self.shares.sessions.open(key, epoch, wanted, forgotten, caller)
        if epoch == INITIAL_EPOCH and caller is not None:
            caller.when_closed(partial(self._close_sessions, caller))
        return session

    def _close_sessions(self, connection: object) -> None:
        for session in self.shares.sessions.sessions_of(connection):
            self.close(session)

    def acknowledge(
        self,
        context: RequestContext,
        key: SessionKey,
        rows: Mapping[TopicIdIndex, Sequence[AckRow]],
        on_outcomes: Callable[[dict[TopicIdIndex, AckOutcome]], None],
        *,
        may_renew: bool,
    ) -> Work[None]:
        """Apply acknowledgements. Calls `on_outcomes` when those of all partitions are stored or
        refused.
        """
        outcomes: dict[TopicIdIndex, AckOutcome] = {}

        def set_outcome(partition: TopicIdIndex, error: ErrorCode, message: str | None) -> None:
            outcomes[partition] = AckOutcome(error, message)
            if len(outcomes) == len(rows):
                on_outcomes(outcomes)

        for partition, batches in rows.items():
            yield ROW_UNITS
            try:
                found = yield from _check_batches(batches, may_renew=may_renew)
                self._acknowledge(context, key, partition, found, set_outcome)
            except ApiError as refusal:
                set_outcome(partition, refusal.code, refusal.own_message)
        if not rows:
            on_outcomes({})

    def _acknowledge(
        self,
        context: RequestContext,
        key: SessionKey,
        partition: TopicIdIndex,
        batches: Sequence[Acknowledgement],
        set_outcome: Callable[[TopicIdIndex, ErrorCode, str | None], None],
    ) -> None:
        topic = self.topic(context, partition)
        self.shares.replicas.get(topic, partition.partition).check_leader(-1)
        leader_share = self.shares.partitions.get_loaded(
            SharePartitionKey(key.group_id, *partition)
        )
        if leader_share is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self.shares.partitions.acknowledge(
            leader_share,
            key.member_id,
            batches,
            lambda error, message: set_outcome(partition, error, message),
        )

    def close(self, session: ShareSession) -> None:
        """End a session, and release the records that its member has acquired."""
        key = session.key
        self.shares.sessions.close(key)
        self.shares.partitions.release(key.member_id, key.group_id)
        if not self.shares.sessions.has_group(key.group_id):
            self.shares.partitions.mark_unused(key.group_id)


def _check_batches(batches: Iterable[AckRow], *, may_renew: bool) -> Work[list[Acknowledgement]]:
    """
    Raises:
        ApiError: INVALID_REQUEST.
    """
    found: list[Acknowledgement] = []
    for row in batches:
        count, kinds = row.last_offset - row.first_offset + 1, {*row.acknowledge_types}
        if (
            row.first_offset < 0
            or count <= 0
            or (found and found[-1].last > row.first_offset)
            or len(row.acknowledge_types) not in (1, count)
            or not _TYPES.issuperset(kinds)
            or (AckType.RENEW in kinds and not may_renew)
        ):
            raise ApiError(ErrorCode.INVALID_REQUEST, "An acknowledgement batch is invalid.")
        found.append(Acknowledgement(row.first_offset, row.last_offset, row.acknowledge_types))
        yield _BATCH_UNITS + len(row.acknowledge_types) // _TYPES_A_UNIT
    return found


def check_initial_request(epoch: int, rows: Mapping[TopicIdIndex, object]) -> None:
    """Require that a request that opens a session acknowledges nothing.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    if epoch == INITIAL_EPOCH and rows:
        message = "Acknowledge data present in the initial fetch request of a share session."
        raise ApiError(ErrorCode.INVALID_REQUEST, message)
