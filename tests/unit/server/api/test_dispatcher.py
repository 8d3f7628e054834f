"""From a frame to its answer: versions, refusals, faults and late answers."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from kafkapy.common.errors import ApiError, ErrorCode, ProtocolViolation
from kafkapy.metadata.acl_authorizer import AclAuthorizer
from kafkapy.metadata.cache import MetadataCache
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.headers import (
    RequestHeader,
    decode_request_header,
    decode_response,
    encode_request,
)
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkapy.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkapy.protocol.server_connection import Request
from kafkapy.server.api import handler_table
from kafkapy.server.api.authorization import Authorization
from kafkapy.server.api.dispatcher import Dispatcher
from kafkapy.server.api.handlers import SERVED
from kafkapy.server.api.request_context import RequestContext
from kafkapy.server.api.topic_ids import TOPIC_FIELDS
from kafkapy.server.cluster.cluster_features import ClusterFeatures
from kafkapy.server.counts.metrics import Metrics
from kafkapy.server.requests.outcomes import CLOSE_CONNECTION, NO_RESPONSE, Pending
from kafkapy.server.requests.turns import SLICE_UNITS, SliceScheduler, Work
from tests.harness.cores.areas import area

CONNECTION: Any = SimpleNamespace(
    client_host="10.0.0.7",
    peer="10.0.0.7:5000",
    listener="INSIDE",
    principal="User:alice",
    is_token=True,
    client_software=("unknown", "unknown"),
)
HEARTBEAT = HeartbeatRequest(group_id="g", member_id="m")


def table(handlers: handler_table.Handlers, authorizer: AclAuthorizer | None = None) -> Any:
    return handler_table.table(handlers, Authorization(authorizer), True, MetadataCache())


class Desk:
    """A dispatcher whose Heartbeat handler does what the test says."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        self.outcome: Any = HeartbeatResponse()
        self.seen: list[tuple[RequestContext, Any]] = []
        handlers = {ApiKey.HEARTBEAT: self.handle, **self.cluster()}
        throttler: Any = SimpleNamespace(quotas=SimpleNamespace(are_set=False))
        nothing: Any = None
        self.dispatcher = Dispatcher(
            table(handlers), self.metrics.requests, throttler, SliceScheduler(), nothing, nothing
        )

    def cluster(self) -> handler_table.Handlers:
        return area(handler_table.cluster, features=ClusterFeatures(()))

    def handle(self, context: RequestContext, request: Any) -> Any:
        self.seen.append((context, request))
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    def ask(self, message: Any = HEARTBEAT, version: int = 4, cut: int = 0) -> Any:
        frame = encode_request(message, version, 77, "me")[4:]
        return self.dispatch(frame[: len(frame) - cut])

    def dispatch(self, frame: bytes) -> Any:
        view = memoryview(frame)
        header, body = decode_request_header(view)
        return self.dispatcher.dispatch(CONNECTION, Request(0, header, view, body))


def read(parts: Any, response: Any, version: int) -> Any:
    """The response of encoded bytes, which answer request 77."""
    data = b"".join(parts)
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    correlation_id, message = decode_response(response, version, memoryview(data)[4:])
    assert correlation_id == 77
    return message


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_a_handler_gets_the_request_and_who_sent_it(desk: Desk) -> None:
    desk.outcome = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    answer = read(desk.ask(version=2), HeartbeatResponse, 2)
    assert answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    [(context, request)] = desk.seen
    assert request == HEARTBEAT
    assert (context.version, context.client_host, context.listener) == (2, "10.0.0.7", "INSIDE")
    assert context.principal == "User:alice"
    assert context.is_token
    assert context.header.client_id == "me"
    assert desk.metrics.requests.by_name["Heartbeat"].count == 1


def test_requests_are_only_logged_when_the_request_logger_has_level_debug(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    desk.outcome = HeartbeatResponse()
    desk.ask()
    assert not caplog.records
    caplog.set_level(logging.DEBUG, "kafka.request.logger")
    desk.ask()
    [record] = caplog.records
    assert record.getMessage().startswith('Completed request:{"requestHeader":')


def test_logged_requests_take_the_path_on_which_they_are_decoded(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "kafka.request.logger")
    untouched: Any = None
    frame = memoryview(encode_request(HEARTBEAT, 4, 77, "me")[4:])
    assert desk.dispatcher.dispatch_fast(CONNECTION, untouched, frame) is None


@pytest.mark.parametrize("outcome", [NO_RESPONSE, CLOSE_CONNECTION, Pending()])
def test_other_outcomes_go_to_the_connection_as_they_are(desk: Desk, outcome: Any) -> None:
    desk.outcome = outcome
    assert desk.ask() is outcome


@pytest.mark.parametrize(
    ("fault", "code", "logged"),
    [
        (ApiError(ErrorCode.INVALID_GROUP_ID), ErrorCode.INVALID_GROUP_ID, []),
        (
            ZeroDivisionError(),
            ErrorCode.UNKNOWN_SERVER_ERROR,
            ["Error while handling Heartbeat from 10.0.0.7"],
        ),
    ],
)
def test_refusals_and_faults_are_answered(
    desk: Desk,
    caplog: pytest.LogCaptureFixture,
    fault: Exception,
    code: ErrorCode,
    logged: list[str],
) -> None:
    desk.outcome = fault
    assert read(desk.ask(), HeartbeatResponse, 4).error_code == code
    assert [record.getMessage() for record in caplog.records] == logged


def test_bytes_that_a_handler_finds_wrong_close_the_connection(desk: Desk) -> None:
    desk.outcome = ProtocolViolation("records")
    with pytest.raises(ProtocolViolation, match="records"):
        desk.ask()


def test_a_body_that_ends_early_never_reaches_a_handler(desk: Desk) -> None:
    with pytest.raises(ProtocolViolation):
        desk.ask(cut=3)
    assert desk.seen == []


@pytest.mark.parametrize("version", [5, 99])
def test_an_unserved_version_names_those_that_are(desk: Desk, version: int) -> None:
    frame = encode_request(HEARTBEAT, 4, 77, "me")[4:]
    with pytest.raises(ProtocolViolation) as refused:
        desk.dispatch(frame[:2] + version.to_bytes(2, "big") + frame[4:])
    assert str(refused.value) == f"version {version} of Heartbeat is not served (0 to 4 are)"


def test_an_unknown_key_is_named(desk: Desk) -> None:
    with pytest.raises(ProtocolViolation, match="api key 999"):
        desk.dispatch((999).to_bytes(2, "big") + bytes(8))


def test_a_client_from_the_future_learns_which_api_versions_it_may_ask(desk: Desk) -> None:
    """KIP-511: answered in version 0, whatever the bytes behind the header are."""
    frame = encode_request(ApiVersionsRequest(), 3, 77, "me")[4:]
    parts = desk.dispatch(frame[:2] + (99).to_bytes(2, "big") + frame[4:])
    answer = read(parts, ApiVersionsResponse, 0)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    [row] = answer.api_keys
    assert (row.api_key, row.min_version, row.max_version) == (18, 0, 5)


def test_a_late_answer_is_encoded_for_the_request_it_belongs_to(desk: Desk) -> None:
    header = RequestHeader(ApiKey.HEARTBEAT, 1, 77, None)
    late = HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID, throttle_time_ms=5)
    parts = desk.dispatcher.encode(header, late)
    assert read(parts, HeartbeatResponse, 1) == late
    for ending in (NO_RESPONSE, CLOSE_CONNECTION):
        assert desk.dispatcher.encode(header, ending) is ending


def test_rules_stand_before_handlers_only_where_there_is_an_authorizer() -> None:
    handlers = dict.fromkeys(SERVED.keys() - TOPIC_FIELDS.keys(), Mock())
    plain = table(handlers)
    assert {key: served.handle for key, served in plain.items()} == handlers
    guarded = table(handlers, AclAuthorizer())
    changed = [key for key, served in guarded.items() if served != plain[key]]
    assert set(changed) == set(handler_table.rules(True)) - TOPIC_FIELDS.keys()


def named(count: int) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(groups=[f"group-{n}" for n in range(count)])


class LargeDesk(Desk):
    """A dispatcher whose DescribeGroups handler answers each group, in slices."""

    def __init__(self) -> None:
        super().__init__()
        self.dispatcher._table = table({ApiKey.DESCRIBE_GROUPS: self.describe})

    def describe(self, context: RequestContext, request: DescribeGroupsRequest) -> Work[Any]:
        rows = []
        for name in request.groups:
            rows.append(DescribedGroup(group_id=name))
            yield 10
            if isinstance(self.outcome, Exception):
                raise self.outcome
        return DescribeGroupsResponse(groups=rows)

    def answered(self, message: Any, version: int = 4) -> Any:
        """The final outcome of a request, and the loop iterations that it took."""

        async def ask() -> tuple[Any, int]:
            outcome, turns = self.ask(message, version), 0
            while isinstance(outcome, Pending):
                assert outcome.blocks
                while not outcome.done:
                    await asyncio.sleep(0)
                    turns += 1
                header = RequestHeader(ApiKey.DESCRIBE_GROUPS, version, 77, None)
                outcome = self.dispatcher.encode(header, outcome.response)
            return outcome, turns

        return asyncio.run(ask())


@pytest.fixture
def large_desk() -> LargeDesk:
    return LargeDesk()


@pytest.mark.parametrize("count", [10, 1000, 20_000])
def test_a_large_request_is_answered_as_a_small_one_is_but_in_slices(
    large_desk: LargeDesk, count: int
) -> None:
    parts, turns = large_desk.answered(named(count))
    answer = read(parts, DescribeGroupsResponse, 4)
    assert [row.group_id for row in answer.groups] == [f"group-{n}" for n in range(count)]
    # 10 units a row, and those of decoding and encoding it.
    assert turns >= count * 12 // (SLICE_UNITS + 10)
    assert large_desk.dispatcher._slices.units_max <= SLICE_UNITS + 10


def test_a_frame_that_is_overwritten_meanwhile_is_read_as_it_was(large_desk: LargeDesk) -> None:
    async def ask() -> Any:
        frame = bytearray(encode_request(named(20_000), 4, 77, "me")[4:])
        view = memoryview(frame)
        header, body = decode_request_header(view)
        pending = large_desk.dispatcher.dispatch(CONNECTION, Request(0, header, view, body))
        frame[:] = bytes(len(frame))
        while not pending.done:
            await asyncio.sleep(0)
        return pending.response

    assert asyncio.run(ask()).groups[-1].group_id == "group-19999"


def test_a_frame_that_unfolds_to_too_much_closes_its_connection(large_desk: LargeDesk) -> None:
    outcome, _ = large_desk.answered(DescribeGroupsRequest(groups=[""] * 500_000))
    assert isinstance(outcome, ProtocolViolation)
    assert str(outcome) == "DescribeGroupsRequest v4: too large in memory"


@pytest.mark.parametrize("count", [10, 20_000])
def test_a_fault_in_a_slice_is_the_answer(large_desk: LargeDesk, count: int) -> None:
    large_desk.outcome = ApiError(ErrorCode.NOT_COORDINATOR)
    parts, _ = large_desk.answered(named(count))
    answer = read(parts, DescribeGroupsResponse, 4)
    assert {row.error_code for row in answer.groups} == {ErrorCode.NOT_COORDINATOR}
    assert len(answer.groups) == count


def test_a_response_that_is_made_late_may_be_made_in_slices(large_desk: LargeDesk) -> None:
    def make() -> Work[DescribeGroupsResponse]:
        yield SLICE_UNITS
        return DescribeGroupsResponse(groups=[DescribedGroup(group_id="late")])

    async def encode() -> Any:
        header = RequestHeader(ApiKey.DESCRIBE_GROUPS, 4, 77, None)
        pending = large_desk.dispatcher.encode(header, make())
        while not pending.done:
            await asyncio.sleep(0)
        return pending.response

    answer = read(asyncio.run(encode()), DescribeGroupsResponse, 4)
    assert [row.group_id for row in answer.groups] == ["late"]


def test_a_response_that_is_made_late_may_have_to_wait_again(large_desk: LargeDesk) -> None:
    """As that of a verified TxnOffsetCommit does for the replicas of the offsets."""
    replicated = Pending()
    response = DescribeGroupsResponse(groups=[DescribedGroup(group_id="late")])

    def make() -> Work[Any]:
        yield SLICE_UNITS
        return replicated

    async def encode() -> Any:
        header = RequestHeader(ApiKey.DESCRIBE_GROUPS, 4, 77, None)
        pending = large_desk.dispatcher.encode(header, make())
        await large_desk.dispatcher._slices.next_turn()
        assert not pending.done
        replicated.complete(response)
        assert pending.done
        return large_desk.dispatcher.encode(header, pending.response)

    assert read(asyncio.run(encode()), DescribeGroupsResponse, 4) == response


def test_a_response_that_its_version_cannot_say_closes_the_connection(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    desk.outcome = HeartbeatResponse(error_code=1 << 20)
    assert desk.ask() is CLOSE_CONNECTION
    assert "cannot be encoded: HeartbeatResponse v4" in caplog.text
