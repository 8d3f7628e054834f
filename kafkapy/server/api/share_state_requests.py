"""Requests of other brokers to the share coordinator. Each row is about one share partition, and
has its own result. A share partition that a request names twice has one row in the response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, Protocol, TypeVar

from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.share_state import SharePartitionKey
from kafkapy.common.uuid import Uuid
from kafkapy.coordinator.shares.messages import StateRequest, StateResult
from kafkapy.protocol.schema import Message
from kafkapy.server.api.handler_support import gather
from kafkapy.server.cluster.cluster_features import ClusterFeatures
from kafkapy.server.coordinators.share_service import ShareService
from kafkapy.server.requests.outcomes import Outcome
from kafkapy.server.requests.turns import ROW_UNITS, Work, hash_units

_APPEND_UNITS: Final = 60
"""The cost of one row that may write a record."""


class Row(Protocol):
    """One share partition of a topic."""

    partition: int


R = TypeVar("R", bound=Row)
R_co = TypeVar("R_co", bound=Row, covariant=True)
S = TypeVar("S")
M = TypeVar("M", bound=Message)


class _Topic(Protocol[R_co]):
    @property
    def topic_id(self) -> Uuid: ...
    @property
    def partitions(self) -> Sequence[R_co]: ...


class StatesRequest(Protocol[R_co]):
    """A request of any of these APIs."""

    @property
    def group_id(self) -> str: ...
    @property
    def topics(self) -> Sequence[_Topic[R_co]]: ...


ToRequest = Callable[[SharePartitionKey, R], StateRequest]
"""Creates the coordinator's request for one row.

Raises:
    ApiError: the row is invalid.
"""
ToRow = Callable[[int, StateResult], S]
"""Creates a partition's row of the response."""
ToResponse = Callable[[Mapping[Uuid, list[S]]], M]
"""Creates the response from the rows of each topic."""


def serve(
    shares: ShareService,
    features: ClusterFeatures,
    request: StatesRequest[R],
    to_request: ToRequest[R],
    to_row: ToRow[S],
    to_response: ToResponse[S, M],
) -> Work[Outcome[M]]:
    """Pass the rows to the share coordinator. All rows get UNSUPPORTED_VERSION unless every
    registered broker supports share groups.
    """
    if not features.has_share_groups:
        return refuse_all_rows(
            request, ApiError(ErrorCode.UNSUPPORTED_VERSION), to_row, to_response
        )
    found: dict[SharePartitionKey, R] = {}
    for key, row in _rows(request):
        found[key] = row
        yield ROW_UNITS
    starts = [partial(_start, shares, to_request, key, row) for key, row in found.items()]

    def respond(results: list[StateResult]) -> Work[M]:
        topics: dict[Uuid, list[S]] = {}
        for key, result in zip(found, results, strict=True):
            topics.setdefault(key.topic_id, []).append(to_row(key.partition, result))
            yield ROW_UNITS + len(result.batches)
        return to_response(topics)

    return (yield from gather(starts, respond, _APPEND_UNITS + hash_units(request.group_id)))


def _rows(request: StatesRequest[R]) -> Iterator[tuple[SharePartitionKey, R]]:
    for topic in request.topics:
        for row in topic.partitions:
            yield SharePartitionKey(request.group_id, topic.topic_id, row.partition), row


def _start(
    shares: ShareService,
    to_request: ToRequest[R],
    key: SharePartitionKey,
    row: R,
    on_result: Callable[[StateResult], None],
) -> None:
    try:
        request = to_request(key, row)
    except ApiError as refusal:
        on_result(StateResult(refusal.code, refusal.message))
        return
    shares.run_internal(shares.coordinator.handle, request, on_result)


def refuse_all_rows(
    request: StatesRequest[R], error: ApiError, to_row: ToRow[S], to_response: ToResponse[S, M]
) -> M:
    """The response with the same error for every share partition."""
    topics: dict[Uuid, list[S]] = {}
    for key, _ in _rows(request):
        topics.setdefault(key.topic_id, []).append(to_row(key.partition, StateResult(error.code)))
    return to_response(topics)
