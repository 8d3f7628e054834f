"""Whole requests of one connection under quotas: what the answers say, and that the connection
handles nothing while its client must pause."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.common.errors import ProtocolViolation
from kafkapy.common.uuid import ZERO_UUID
from kafkapy.metadata.client_quotas import QuotaKind
from kafkapy.protocol.api_keys import ApiKey
from kafkapy.protocol.headers import decode_response
from kafkapy.protocol.messages.api_versions import ApiVersionsResponse
from kafkapy.protocol.messages.fetch import FetchResponse
from kafkapy.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kafkapy.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kafkapy.protocol.messages.share_fetch import (
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchResponse,
)
from kafkapy.protocol.messages.stop_replica import StopReplicaRequest
from kafkapy.server.api import throttler
from kafkapy.server.quotas.client_quotas import Client as QuotaClient
from kafkapy.server.requests.outcomes import Pending
from tests.harness.cores.hot_path import FETCH, PRODUCE, Client, fetch, produce
from tests.harness.cores.paused_loops import fake_timers
from tests.harness.cores.ports import NOW_MS
from tests.harness.cores.server_parts import FakeTimers, Parts
from tests.harness.storage.partitions import batch

ME = QuotaClient("ANONYMOUS", "me")
LIST_OFFSETS = 7


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> FakeTimers:
    return fake_timers(monkeypatch)


@pytest.fixture
def parts(tmp_path: Path, timers: FakeTimers) -> Parts:
    parts = Parts(tmp_path)
    parts.lead()
    return parts


@pytest.fixture
def client(parts: Parts) -> Client:
    return Client(parts)


@pytest.fixture
def handlers_take_half_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock of handlers is half a second after the last."""
    ticks = iter(range(1000))
    for module in ("throttler", "dispatcher"):
        name = f"kafkapy.server.api.{module}.time.perf_counter"
        monkeypatch.setattr(name, lambda: next(ticks) / 2)


def limit(parts: Parts, **configs: object) -> None:
    parts.client_quotas.update("users", "ANONYMOUS", {k: str(v) for k, v in configs.items()})


def rate(parts: Parts, kind: QuotaKind) -> float:
    usage = parts.client_quotas.by_kind[kind].usage(ME, parts.clock.now_ms)
    assert usage is not None
    return usage.rate.rate(parts.clock.now_ms)


def produced(client: Client) -> int:
    answer = client.asks(PRODUCE, produce("t"), ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == 0
    return answer.throttle_time_ms


def test_a_producer_is_told_at_once_and_then_has_to_wait(
    parts: Parts, client: Client, timers: FakeTimers
) -> None:
    limit(parts, producer_byte_rate=1)
    first_ms = produced(client)
    size_bytes = round(rate(parts, QuotaKind.PRODUCE) * 10)
    assert size_bytes > 50
    assert first_ms == (size_bytes - 10) * 1000
    assert timers.delays_s == [first_ms / 1000]
    client.transport.sent = b""
    client.sends(PRODUCE, produce("t"))()
    assert client.transport.sent == b""
    assert parts.replicas.partitions["t"][0].log.log_end_offset == 1
    assert not client.connection.is_idle
    timers.fire()
    assert parts.replicas.partitions["t"][0].log.log_end_offset == 2
    assert client.transport.sent


@pytest.mark.parametrize(
    "quota", [{"producer_byte_rate": 1}, {"request_percentage": 1e-9}], ids=str
)
def test_a_producer_on_its_fast_path_is_throttled_too(
    parts: Parts, client: Client, timers: FakeTimers, quota: dict[str, float]
) -> None:
    assert [produced(client) for _ in range(3)] == [0, 0, 0]
    limit(parts, **quota)
    pause_ms = produced(client)
    assert pause_ms > 0
    assert timers.delays_s == [pause_ms / 1000]
    timers.fire()
    limit(parts)
    assert produced(client) == 0


def test_a_version_without_a_word_for_it_is_throttled_too(
    parts: Parts, client: Client, timers: FakeTimers
) -> None:
    limit(parts, producer_byte_rate=1)
    client.transport.sent = b""
    client.sends(3, produce("t"))()
    assert decode_response(ProduceResponse, 3, client.transport.sent[4:])[1].throttle_time_ms > 0
    timers.fire()
    client.transport.sent = b""
    old = ProduceRequest(acks=1, timeout_ms=1, topic_data=[])
    client.sends(0, old)()
    assert decode_response(ProduceResponse, 0, client.transport.sent[4:])[1].throttle_time_ms == 0
    assert len(timers.delays_s) == 1


def test_without_acknowledgement_only_the_connection_says_it(
    parts: Parts, client: Client, timers: FakeTimers
) -> None:
    limit(parts, producer_byte_rate=1, request_percentage=1e-9)
    client.transport.sent = b""
    client.sends(PRODUCE, produce("t", acks=0), produce("t", acks=0))()
    assert client.transport.sent == b""
    assert parts.replicas.partitions["t"][0].log.log_end_offset == 1
    assert len(timers.delays_s) == 1
    assert rate(parts, QuotaKind.REQUEST) == 0


def test_a_large_produce_without_acknowledgement_is_throttled_too(tmp_path: Path) -> None:
    """It is handled in slices. Producers with acks=0 and many partitions had no quota."""
    parts = Parts(tmp_path)
    partitions = [parts.lead(index=index) for index in range(24)]
    limit(parts, producer_byte_rate=1, request_percentage=1e-9)
    records = batch(1, NOW_MS, bytes(5000))
    rows = [PartitionProduceData(index=index, records=records) for index in range(24)]
    request = ProduceRequest(
        acks=0, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=rows)]
    )

    async def send() -> None:
        client = Client(parts)
        client.sends(PRODUCE, request)()
        while not partitions[-1].log.log_end_offset:
            await asyncio.sleep(0)
        assert parts.slices.units_max > 0
        assert not client.connection.is_idle
        client.connection.connection_lost(None)

    asyncio.run(send())
    assert rate(parts, QuotaKind.PRODUCE) > 24 * 500
    assert rate(parts, QuotaKind.REQUEST) == 0


def test_a_produce_that_waits_is_charged_when_it_is_answered(
    parts: Parts, client: Client, timers: FakeTimers
) -> None:
    partition = parts.lead(isr=(1, 2), leader_epoch=1, partition_epoch=1)
    limit(parts, producer_byte_rate=1)
    client.sends(PRODUCE, produce("t"), produce("t"))()
    assert rate(parts, QuotaKind.PRODUCE) == 0
    assert timers.delays_s == []
    parts.fetch_as_follower(partition, 2)
    assert rate(parts, QuotaKind.PRODUCE) > 0
    assert len(timers.delays_s) == 1  # the longer of the two


# fetches


def test_a_consumer_beyond_its_quota_gets_nothing_and_pays_nothing(
    parts: Parts, client: Client, timers: FakeTimers
) -> None:
    for _ in range(5):
        produced(client)
    limit(parts, consumer_byte_rate=10)
    session_id = client.fetches(fetch(session=(0, 0))).session_id
    used = rate(parts, QuotaKind.FETCH)
    assert 0 < used <= 10
    told = client.fetches(fetch(0, session=(session_id, 1)))
    assert told.throttle_time_ms == round((2 * used - 10) / 10 * 10_000)
    assert (told.responses, told.session_id) == ([], session_id)
    assert rate(parts, QuotaKind.FETCH) == used
    assert timers.delays_s == [told.throttle_time_ms / 1000]
    timers.fire()
    limit(parts)
    [topic] = client.fetches(fetch(0, session=(session_id, 2))).responses
    assert bytes(topic.partitions[0].records) != b""


def test_a_full_fetch_that_is_throttled_makes_no_session(parts: Parts, client: Client) -> None:
    produced(client)
    limit(parts, consumer_byte_rate=1)
    client.fetches(fetch())
    answer = client.fetches(fetch(session=(0, 0)))
    assert answer.throttle_time_ms > 0
    assert (answer.session_id, answer.responses) == (0, [])
    assert len(parts.fetch_sessions) == 0


def test_a_batch_larger_than_the_quota_allows_at_once_comes_after_a_while(
    parts: Parts, client: Client, timers: FakeTimers
) -> None:
    """It would never come otherwise, and its consumer would never get behind it."""
    for _ in range(2):
        produced(client)
    limit(parts, consumer_byte_rate=1)
    for _ in range(2):
        given = client.fetches(fetch())
        assert given.throttle_time_ms == 0
        assert bytes(given.responses[0].partitions[0].records) != b""
        told = client.fetches(fetch(1))
        assert told.throttle_time_ms > 0
        assert told.responses == []
        timers.fire()
        parts.clock.now_ms += told.throttle_time_ms


def test_a_fetch_asks_for_no_more_than_its_quota_has(parts: Parts, client: Client) -> None:
    for _ in range(3):
        produced(client)
    one = len(bytes(client.fetches(fetch()).responses[0].partitions[0].records))
    request = fetch()
    request.topics[0].partitions[0].partition_max_bytes = 1 << 20
    whole = client.fetches(request).responses[0].partitions[0].records
    assert len(bytes(whole)) == 3 * one
    limit(parts, consumer_byte_rate=one // 6)  # ten windows of it: less than two batches
    bounded = client.fetches(request)
    assert bounded.throttle_time_ms == 0
    assert len(bytes(bounded.responses[0].partitions[0].records)) < 2 * one


def test_followers_have_no_quota(parts: Parts, client: Client, timers: FakeTimers) -> None:
    parts.lead(isr=(1, 2), leader_epoch=1, partition_epoch=1)
    client.sends(PRODUCE, produce("t", acks=1))()
    limit(parts, consumer_byte_rate=1, request_percentage=1e-9)
    answer = client.fetches(fetch(replica_id=2))
    assert bytes(answer.responses[0].partitions[0].records) != b""
    assert answer.throttle_time_ms == 0
    assert timers.delays_s == []


def test_waiting_for_records_is_no_work(
    parts: Parts, client: Client, handlers_take_half_a_second: None
) -> None:
    limit(parts, request_percentage=1000)
    client.sends(FETCH, fetch(max_wait_ms=500))()
    assert len(parts.replicas.fetch_purgatory) == 1
    assert rate(parts, QuotaKind.REQUEST) == 0
    producer = Client(parts)
    producer.sends(PRODUCE, produce("t"))()
    # Half a second of each: what the fetch did before it waited, and the produce.
    assert rate(parts, QuotaKind.REQUEST) == 50 / 10 + 50 / 10
    assert client.transport.sent


def test_a_consumer_of_many_partitions_is_not_throttled_because_it_waited(
    parts: Parts,
    client: Client,
    handlers_take_half_a_second: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Many rows are read in slices. The wait for their records counted as work of the broker."""
    parts.lead(index=1)
    monkeypatch.setattr("kafkapy.server.api.handlers.fetch.ROWS_AT_ONCE", 1)
    limit(parts, request_percentage=50)
    client.sends(FETCH, fetch(2, max_wait_ms=60_000))()
    assert len(parts.replicas.fetch_purgatory) == 1
    for _ in range(100):  # half a second each
        time.perf_counter()
    producer = Client(parts)
    producer.sends(PRODUCE, produce("t"))()
    _, answer = decode_response(FetchResponse, FETCH, client.transport.sent[4:])
    assert answer.throttle_time_ms == 0
    assert answer.responses[0].partitions[0].records


def test_a_consumer_of_many_partitions_is_not_charged_for_the_requests_of_others(
    parts: Parts, client: Client, timers: FakeTimers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests that were handled between the slices of its fetch counted as its own."""
    now_s = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: now_s)
    monkeypatch.setattr("kafkapy.server.api.handlers.fetch.ROWS_AT_ONCE", 1)
    monkeypatch.setattr("kafkapy.server.requests.turns.SLICE_UNITS", 1)
    parts.lead(index=1)
    limit(parts, request_percentage=1)
    client.sends(FETCH, fetch(2))()
    turns = 0
    while not client.transport.sent:
        now_s += 100
        turns += 1
        timers.fire()
    assert turns > 1
    assert rate(parts, QuotaKind.REQUEST) == 0


# time


def test_the_time_of_handlers_is_charged(
    parts: Parts, client: Client, timers: FakeTimers, handlers_take_half_a_second: None
) -> None:
    limit(parts, request_percentage=4.9)
    answer = client.asks(LIST_OFFSETS, ListOffsetsRequest(topics=[]), ListOffsetsResponse)
    assert rate(parts, QuotaKind.REQUEST) == 5  # half a second in ten
    assert answer.throttle_time_ms == round((5 - 4.9) / 4.9 * 10_000)
    assert timers.delays_s == [answer.throttle_time_ms / 1000]
    timers.fire()
    limit(parts, request_percentage=0.1)
    answer = client.asks(LIST_OFFSETS, ListOffsetsRequest(topics=[]), ListOffsetsResponse)
    assert answer.throttle_time_ms == 1000  # a window at most


def test_the_longer_pause_counts(
    parts: Parts, client: Client, timers: FakeTimers, handlers_take_half_a_second: None
) -> None:
    limit(parts, request_percentage=0.1, producer_byte_rate=1)
    pause_ms = produced(client)
    assert pause_ms > 1000
    assert timers.delays_s == [pause_ms / 1000]
    by_kind = parts.client_quotas.by_kind
    averages = {
        kind: [usage.pauses.average(parts.clock.now_ms) for _, usage in by_kind[kind].items()]
        for kind in (QuotaKind.PRODUCE, QuotaKind.REQUEST)
    }
    assert averages[QuotaKind.PRODUCE] == [pause_ms]
    assert averages[QuotaKind.REQUEST] != [pause_ms]


@pytest.mark.parametrize("key", sorted(throttler._EXEMPT_APIS))
def test_what_brokers_ask_is_exempt(parts: Parts, timers: FakeTimers, key: ApiKey) -> None:
    limit(parts, request_percentage=0)
    outcome: Any = Pending() if key == ApiKey.ALTER_PARTITION else StopReplicaRequest()
    context: Any = type("Context", (), {"header": type("Header", (), {"api_key": key})})
    nothing: Any = None
    assert parts.throttler.charge_request(nothing, context, nothing, outcome, 9.0) is outcome
    assert timers.delays_s == []
    exempt = parts.client_quotas.exempt
    assert exempt.rate(parts.clock.monotonic_ms()) == 90  # percent, over ten windows


def test_a_peer_without_login_does_not_use_up_the_quota_of_a_client(
    parts: Parts, timers: FakeTimers
) -> None:
    """ApiVersions is answered before the login, and its client id is of the peer's choice."""
    parts.client_quotas.update("clients", "me", {"request_percentage": "1"})
    header = SimpleNamespace(api_key=ApiKey.API_VERSIONS, client_id="me")
    context: Any = SimpleNamespace(principal="User:ANONYMOUS", header=header)
    response: Any = ApiVersionsResponse()
    nothing: Any = None
    assert parts.throttler.charge_request(nothing, context, nothing, response, 9.0) is response
    assert timers.delays_s == []
    assert rate(parts, QuotaKind.REQUEST) == 0


def test_a_share_consumer_beyond_the_quota_of_consumers_has_to_wait(parts: Parts) -> None:
    parts.client_quotas.update("clients", "me", {"consumer_byte_rate": "1"})
    header = SimpleNamespace(api_key=ApiKey.SHARE_FETCH, client_id="me")
    context: Any = SimpleNamespace(principal="User:ANONYMOUS", header=header)
    rows = [PartitionData(partition_index=0, records=b"x" * 100), PartitionData(partition_index=1)]
    topic = ShareFetchableTopicResponse(topic_id=ZERO_UUID, partitions=rows)
    muted: list[int] = []
    connection: Any = SimpleNamespace(mute=muted.append)
    request: Any = None
    response: Any = ShareFetchResponse(responses=[topic], acquisition_lock_timeout_ms=200_000)
    assert parts.throttler.charge_request(connection, context, request, response, 0.0) is response
    assert response.throttle_time_ms == (100 - 10) * 1000
    assert muted == [response.throttle_time_ms]
    assert response.responses[0].partitions == rows, "they are acquired, so they must be delivered"
    assert parts.throttler.fetch_bytes_max(context) == 10
    response.acquisition_lock_timeout_ms = 30_000
    parts.throttler.charge_request(connection, context, request, response, 0.0)
    assert muted[-1] == 15_000, "a longer pause would be one without a chance to acknowledge"


@pytest.mark.parametrize("key", [ApiKey.FETCH, ApiKey.CREATE_TOPICS, ApiKey.LIST_OFFSETS])
def test_a_violation_that_a_large_request_turns_out_to_be_is_passed_on(
    parts: Parts, timers: FakeTimers, key: ApiKey
) -> None:
    limit(parts, request_percentage=0)
    pending: Any = Pending(blocks=True)
    pending.seconds = 9.0
    header = SimpleNamespace(api_key=key, client_id="me")
    context: Any = SimpleNamespace(principal="User:ANONYMOUS", header=header)
    nothing: Any = None
    outcome: Any = parts.throttler.charge_request(nothing, context, nothing, pending, 0.0)
    violation: Any = ProtocolViolation("cut short")
    pending.complete(violation)
    assert outcome.response is violation
    assert timers.delays_s == []


def test_a_connection_that_ends_is_not_made_to_wait(parts: Parts, timers: FakeTimers) -> None:
    limit(parts, producer_byte_rate=1)
    client = Client(parts)
    client.sends(PRODUCE, produce("missing", acks=0))()
    assert client.transport.closing
    assert timers.delays_s == []
