"""Quotas at work: who is counted with whom, what a pause is, and what changes at run time."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.common.errors import ApiError, ConfigError, ErrorCode
from kafkapy.metadata.client_quotas import QuotaKind, Tags
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.quotas.client_quotas import Client, ClientQuotas
from tests.harness.cores.ports import ManualClock

NOW_MS = 1_000_000
ALICE, BOB = Client("alice", "app"), Client("bob", "app")


class Quotas:
    """One broker's, with a clock that the test moves."""

    def __init__(self, **properties: str) -> None:
        given = {name.replace("_", "."): value for name, value in properties.items()}
        self.clock = ManualClock(NOW_MS)
        self.quotas = ClientQuotas(KafkaConfig(given), self.clock)

    def set(self, entity_type: str, entity: str, **configs: float) -> None:
        self.quotas.update(entity_type, entity, {k: str(v) for k, v in configs.items()})

    def record(self, kind: QuotaKind, client: Client, value: float) -> int:
        return self.quotas.by_kind[kind].record(client, value, self.clock.monotonic_ms())


def test_without_quotas_nothing_is_written_down() -> None:
    quotas = Quotas()
    assert not quotas.quotas.are_set
    assert quotas.record(QuotaKind.PRODUCE, ALICE, 1e12) == 0
    assert list(quotas.quotas.by_kind[QuotaKind.PRODUCE].items()) == []


def test_a_user_shares_one_quota_among_clients() -> None:
    quotas = Quotas()
    quotas.set("users", "alice", producer_byte_rate=100)
    assert quotas.quotas.are_set
    assert quotas.record(QuotaKind.PRODUCE, Client("alice", "one"), 1000) == 0
    assert quotas.record(QuotaKind.PRODUCE, Client("alice", "two"), 500) == 5000
    assert quotas.record(QuotaKind.PRODUCE, BOB, 5000) == 0
    assert quotas.record(QuotaKind.FETCH, ALICE, 5000) == 0
    [(tags, usage)] = quotas.quotas.by_kind[QuotaKind.PRODUCE].items()
    assert tags == Tags("alice", "")
    assert usage.rate.rate(NOW_MS) == 150


def test_names_in_znodes_are_sanitized() -> None:
    quotas = Quotas()
    quotas.set("users", "a%20b/clients/c%2Fd", producer_byte_rate=100)
    quotas.set("users", "%3Cdefault%3E", producer_byte_rate=200)
    quotas.set("clients", "<default>", producer_byte_rate=300)
    found = quotas.quotas.by_kind[QuotaKind.PRODUCE].table.find
    assert found("a b", "c/d") == (Tags("a b", "c/d"), 100)
    assert found("<default>", "x") == (Tags("<default>", ""), 200)
    assert found("a b", "x") == (Tags("", "x"), 300)


def test_changes_are_in_force_at_once_and_gone_at_once() -> None:
    quotas = Quotas()
    quotas.set("clients", "app", consumer_byte_rate=1000)
    assert quotas.record(QuotaKind.FETCH, ALICE, 10_000) == 0
    quotas.set("clients", "app", consumer_byte_rate=500)
    assert quotas.record(QuotaKind.FETCH, ALICE, 0) == 10_000
    with pytest.raises(ConfigError, match="consumer_byte_rate=half"):
        quotas.quotas.update("clients", "app", {"consumer_byte_rate": "half"})
    assert quotas.record(QuotaKind.FETCH, ALICE, 0) == 10_000
    quotas.set("clients", "app")
    assert not quotas.quotas.are_set
    assert quotas.record(QuotaKind.FETCH, ALICE, 0) == 0


def test_pauses_of_requests_are_a_window_at_most() -> None:
    quotas = Quotas(quota_window_size_seconds="2")
    quotas.set("users", "<default>", request_percentage=1, producer_byte_rate=1)
    assert quotas.record(QuotaKind.REQUEST, ALICE, 100) == 2000
    assert quotas.record(QuotaKind.PRODUCE, ALICE, 100) == 80_000


def test_what_is_taken_back_makes_nobody_pause() -> None:
    quotas = Quotas()
    quotas.set("users", "alice", consumer_byte_rate=100)
    fetched = quotas.quotas.by_kind[QuotaKind.FETCH]
    assert quotas.record(QuotaKind.FETCH, ALICE, 2000) == 10_000
    fetched.unrecord(ALICE, 2000, NOW_MS)
    fetched.unrecord(BOB, 2000, NOW_MS)  # who has none
    assert quotas.record(QuotaKind.FETCH, ALICE, 1000) == 0


@pytest.mark.parametrize(("rate", "burst"), [(100, 1000), (1, 10), (0, None), (-5, None)])
def test_what_can_be_had_at_once(rate: int, burst: int | None) -> None:
    quotas = Quotas()
    fetched = quotas.quotas.by_kind[QuotaKind.FETCH]
    assert fetched.burst(ALICE) is None
    quotas.set("users", "alice", consumer_byte_rate=rate)
    assert fetched.burst(ALICE) == burst


# Mutations, 5 a second: 55 are there at first.


def mutating() -> Quotas:
    quotas = Quotas()
    quotas.set("users", "alice", controller_mutation_rate=5)
    return quotas


def test_a_strict_request_is_refused_once_the_credit_is_used_up() -> None:
    quotas = mutating()
    allowed = quotas.quotas.mutations(ALICE, strict=True)
    allowed.charge(60)  # what was begun is let through whole
    assert allowed.pause_ms() == 0
    with pytest.raises(ApiError, match="THROTTLING_QUOTA_EXCEEDED") as refused:
        allowed.charge(1)
    assert refused.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert allowed.pause_ms() == 1000
    quotas.clock.now_ms += 400
    assert allowed.pause_ms() == 600
    quotas.clock.now_ms += 600
    later = quotas.quotas.mutations(ALICE, strict=True)
    later.charge(1)
    assert (allowed.pause_ms(), later.pause_ms()) == (0, 0)


def test_a_permissive_request_is_refused_nothing_and_pauses() -> None:
    quotas = mutating()
    allowed = quotas.quotas.mutations(ALICE, strict=False)
    allowed.charge(50)
    assert allowed.pause_ms() == 0
    allowed.charge(15)
    assert allowed.pause_ms() == 2000
    with pytest.raises(ApiError, match="EXCEEDED"):
        quotas.quotas.mutations(ALICE, strict=True).charge(1)
    quotas.quotas.mutations(BOB, strict=True).charge(1000)


def test_a_mutation_rate_of_nothing_never_comes_back() -> None:
    quotas = Quotas()
    quotas.set("users", "alice", controller_mutation_rate=0)
    allowed = quotas.quotas.mutations(ALICE, strict=True)
    allowed.charge(1)
    quotas.clock.now_ms += 1_000_000
    with pytest.raises(ApiError, match="EXCEEDED"):
        allowed.charge(1)
    assert allowed.pause_ms() == 0


def test_mutations_have_windows_of_their_own() -> None:
    quotas = Quotas(controller_quota_window_num="2")
    quotas.set("users", "alice", controller_mutation_rate=5)
    usage = quotas.quotas.by_kind[QuotaKind.CONTROLLER_MUTATION].usage(ALICE, NOW_MS)
    assert usage is not None
    assert usage.bucket.tokens(5, NOW_MS) == 10


# connections


def connections(**rates: int) -> Any:
    made = Quotas().quotas.connections
    for address, rate in rates.items():
        name = None if address == "default" else address
        made.set(name, {"connection_creation_rate": str(rate)})
    return made


def test_an_address_that_connects_too_often_is_turned_away() -> None:
    rates = connections(default=1, a=2)
    assert [rates.record_connection("b", NOW_MS) for _ in range(11)] == [0] * 10 + [1000]
    assert [rates.record_connection("a", NOW_MS) for _ in range(21)] == [0] * 20 + [500]
    # Who is turned away has not connected.
    assert rates.record_connection("b", NOW_MS) == 1000
    assert rates.record_connection("b", NOW_MS + 11_000) == 0
    assert {address for address, _ in rates.items()} == {"a", "b"}


def test_rates_of_addresses_come_and_go() -> None:
    rates = connections(a=0)
    assert rates.record_connection("a", NOW_MS) == 1000
    assert rates.record_connection("b", NOW_MS) == 0
    with pytest.raises(ConfigError, match="connection_creation_rate=many"):
        rates.set("a", {"connection_creation_rate": "many"})
    assert rates.record_connection("a", NOW_MS) == 1000
    rates.set("a", {})
    rates.set("a", {})
    assert rates.record_connection("a", NOW_MS) == 0
