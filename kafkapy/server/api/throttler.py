"""Charges each request to its client, and throttles clients beyond a quota (KIP-219): the response
is sent at once with the time of the pause, during which the connection handles nothing.

The time of a request is the time that the event loop spends in its handler. A broker has 100
percent in total, whereas Kafka has 100 percent for each thread. Requests between brokers are exempt
(`kafka.server.RequestHandlerHelper`). Without quotas, only `fetch_bytes_max` is called.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from kafkapy.common.ports import Clock
from kafkapy.metadata.client_quotas import QuotaKind
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.messages.share_fetch import ShareFetchResponse
from kafkapy.protocol.server_connection import Request
from kafkapy.server.quotas.client_quotas import Client, ClientQuotas, Quota, client_named
from kafkapy.server.requests.outcomes import ANONYMOUS, CLOSE_CONNECTION, Pending, then

if TYPE_CHECKING:
    from kafkapy.protocol.headers import RequestHeader
    from kafkapy.protocol.schema import Message
    from kafkapy.server.requests.outcomes import Outcome, Work
    from kafkapy.server.requests.request_handler import Caller

_EXEMPT_APIS: Final = frozenset(
    {
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.ALTER_PARTITION,
    }
)
# The handlers of these APIs set the pause for mutations in the response.
_MUTATION_APIS: Final = frozenset(
    {ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS, ApiKey.DELETE_TOPICS}
)

R = TypeVar("R")

Pauses = dict[QuotaKind, int]  # ms


class ChargedRequest(Protocol):
    """The client and the API of a request."""

    principal: str
    header: RequestHeader


def client_of(context: ChargedRequest) -> Client:
    """The client whose quota a request uses."""
    return client_named(context.principal, context.header.client_id)


class Throttler:
    """The throttler of one broker."""

    def __init__(self, quotas: ClientQuotas, clock: Clock) -> None:
        self.quotas = quotas
        self._quotas = quotas.by_kind
        self._exempt = quotas.exempt
        self._clock = clock

    def charge_request(
        self,
        connection: Caller,
        context: ChargedRequest,
        request: Request,
        outcome: Outcome[Message],
        seconds: float,
    ) -> Outcome[Message]:
        """Charge a request, whose handler took `seconds`, to its client, and add the pause to the
        response. With a `Pending`, this happens when it completes.
        """
        key = context.header.api_key
        if key in _EXEMPT_APIS:
            self._exempt.record(seconds * 100, self._clock.monotonic_ms())
            return outcome
        # A peer that cannot log in may send ApiVersions with the client id of another client.
        is_before_login = key == ApiKey.API_VERSIONS and context.principal == ANONYMOUS
        if outcome is CLOSE_CONNECTION or is_before_login:
            return outcome
        if key == ApiKey.FETCH:  # its handler has charged it (`FetchMeter`)
            return then(outcome, partial(_mute_for_throttle_time, connection))
        client = client_of(context)
        size_bytes = len(request.frame) if key == ApiKey.PRODUCE else 0
        costs: dict[QuotaKind, float] = {QuotaKind.REQUEST: seconds * 100}
        if size_bytes:
            costs[QuotaKind.PRODUCE] = size_bytes

        def charge(response: Message) -> Message:
            if isinstance(outcome, Pending):
                costs[QuotaKind.REQUEST] += outcome.seconds * 100
            pauses = self._charge(client, costs)
            if isinstance(response, ShareFetchResponse):
                pauses |= self._charge_acquired(client, response)
            if key in _MUTATION_APIS:
                pauses[QuotaKind.CONTROLLER_MUTATION] = _throttle_time_ms(response)
            longest_ms = self._pause(connection, client, pauses)
            if longest_ms and hasattr(response, "throttle_time_ms"):
                response.throttle_time_ms = longest_ms
            return response

        # Only a produce request may have no response.
        return then(outcome, charge, lambda: self.charge_produce(connection, client, size_bytes))

    def _charge_acquired(self, client: Client, response: ShareFetchResponse) -> Pauses:
        """Charge the records of a share fetch. The client has acquired them, so it gets them, and
        it must be able to acknowledge them while it holds their locks.
        """
        rows = (row for topic in response.responses for row in topic.partitions)
        size_bytes = sum(len(row.records or b"") for row in rows)
        pauses = self._charge(client, {QuotaKind.FETCH: size_bytes})
        longest_ms = response.acquisition_lock_timeout_ms // 2
        return {kind: min(pause_ms, longest_ms) for kind, pause_ms in pauses.items()}

    def charge_produce(self, connection: Caller, client: Client, size_bytes: int) -> int:
        """Charge the bytes of a produce request, and not its time. Starts the pause, and returns
        it in ms.
        """
        pauses = self._charge(client, {QuotaKind.PRODUCE: size_bytes})
        return self._pause(connection, client, pauses)

    def fetch_bytes_max(self, context: ChargedRequest) -> int | None:
        """The bytes that a client may fetch at once without a pause, if a quota limits them."""
        return self._quotas[QuotaKind.FETCH].burst(client_of(context))

    def meter(self, context: ChargedRequest) -> FetchMeter:
        """The meter of a consumer's fetch that begins now."""
        bytes_max = self.fetch_bytes_max(context)
        return FetchMeter(self._quotas, self._clock, client_of(context), bytes_max)

    def _charge(self, client: Client, costs: dict[QuotaKind, float]) -> Pauses:
        now_ms = self._clock.monotonic_ms()
        return {k: self._quotas[k].record(client, cost, now_ms) for k, cost in costs.items()}

    def _pause(self, connection: Caller, client: Client, pauses: Pauses) -> int:
        """Pause the connection for the longest of `pauses`, and record that pause."""
        kind = max(pauses, key=pauses.__getitem__)
        longest_ms = pauses[kind]
        if longest_ms:
            self._quotas[kind].record_pause(client, longest_ms, self._clock.monotonic_ms())
            connection.mute(longest_ms)
        return longest_ms


class FetchMeter:
    """The cost of a consumer's fetch of at most `bytes_max`. A client that must pause gets no
    records, and is not charged for them. Waiting for records costs nothing.

    A batch that is larger than the burst of the quota is returned once the windows are empty, and
    the next fetch pauses. Kafka never returns such a batch.
    """

    __slots__ = ("_client", "_clock", "_quotas", "_seconds", "_started_s", "bytes_max")

    def __init__(
        self,
        quotas: Mapping[QuotaKind, Quota],
        clock: Clock,
        client: Client,
        bytes_max: int | None,
    ) -> None:
        self._quotas = quotas
        self._clock = clock
        self._client = client
        self._seconds = 0.0
        self._started_s: float | None = time.perf_counter()
        self.bytes_max = bytes_max

    def park(self) -> None:
        """Stop the clock: the fetch waits from now on."""
        if self._started_s is not None:
            self._seconds += time.perf_counter() - self._started_s
            self._started_s = None

    def measured(self, work: Work[R]) -> Work[R]:
        """Work whose steps are charged. Before each of them, requests of others are handled."""
        self.park()
        return self._steps(work)

    def _steps(self, work: Work[R]) -> Work[R]:
        result = None
        while True:
            self._started_s = time.perf_counter()
            try:
                step = work.send(result)
            except StopIteration as end:
                returned: R = end.value
                return returned
            self.park()
            result = yield step

    def record_and_get_pause_ms(self, size_bytes: int) -> int:
        """Charge the fetch, and return the client's pause. If it is not 0, the response must have
        no records.
        """
        self.park()
        client, now_ms = self._client, self._clock.monotonic_ms()
        fetch_quota = self._quotas[QuotaKind.FETCH]
        request_quota = self._quotas[QuotaKind.REQUEST]
        request_pause_ms = request_quota.record(client, self._seconds * 100, now_ms)
        exceeds_burst = self.bytes_max is not None and size_bytes > self.bytes_max
        may_exceed_burst = exceeds_burst and fetch_quota.is_unused(client, now_ms)
        fetch_pause_ms = fetch_quota.record(client, size_bytes, now_ms)
        if may_exceed_burst:
            fetch_pause_ms = 0
        pause_ms = max(request_pause_ms, fetch_pause_ms)
        if pause_ms:
            fetch_quota.unrecord(client, size_bytes, now_ms)
            stricter_quota = fetch_quota if fetch_pause_ms > request_pause_ms else request_quota
            stricter_quota.record_pause(client, pause_ms, now_ms)
        return pause_ms


def _mute_for_throttle_time(connection: Caller, response: Message) -> Message:
    pause_ms = _throttle_time_ms(response)
    if pause_ms:
        connection.mute(pause_ms)
    return response


def _throttle_time_ms(response: Message) -> int:
    pause_ms: int = getattr(response, "throttle_time_ms", 0)
    return pause_ms
