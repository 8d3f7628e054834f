"""Quota metrics under the names of Kafka's beans."""

from __future__ import annotations

import math
from typing import Any

from kafkapy.metadata.client_quotas import QuotaKind
from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.quotas.client_quotas import Client, ClientQuotas
from kafkapy.server.quotas.quota_metrics import QuotaMetrics
from tests.harness.cores.ports import NOW_MS, ManualClock

ALICE = Client("alice", "app")


def quotas(**configs: str) -> ClientQuotas:
    made = ClientQuotas(KafkaConfig({}), ManualClock())
    made.update("users", "alice/clients/app", configs)
    return made


def scraped(of: ClientQuotas) -> dict[tuple[Any, ...], float]:
    """Samples by name and the values of their labels."""
    return {
        (sample.name.removeprefix("kafka_server_"), *sample.labels.values()): sample.value
        for family in QuotaMetrics(of, ManualClock()).collect()
        for sample in family.samples
    }


def of_clients(of: ClientQuotas) -> dict[tuple[Any, ...], float]:
    return {key: v for key, v in scraped(of).items() if not key[0].startswith("socket")}


def test_without_quotas_there_are_no_samples_of_clients() -> None:
    assert of_clients(quotas()) == {}


def test_what_connects_is_counted_without_any_rate() -> None:
    made = quotas()
    for _ in range(20):
        made.creations.record_connection("PLAINTEXT", NOW_MS)
    made.creations.record_address_pause("PLAINTEXT", 300, NOW_MS)
    found = scraped(made)
    assert found[("socketservermetrics_broker_connection_accept_rate",)] == 2
    assert found[("socketservermetrics_connection_accept_rate", "PLAINTEXT", "")] == 2
    assert math.isnan(found[("socketservermetrics_connection_accept_throttle_time", "PLAINTEXT")])
    assert found[("socketservermetrics_ip_connection_accept_throttle_time", "PLAINTEXT")] == 300


def test_what_is_used_and_how_long_the_pauses_are() -> None:
    rates = {"producer_byte_rate": "100", "request_percentage": "1"}
    used = quotas(**rates)
    produce, request = used.by_kind[QuotaKind.PRODUCE], used.by_kind[QuotaKind.REQUEST]
    produce.record(ALICE, 3000, NOW_MS)
    for pause_ms in (1000, 3000):
        produce.record_pause(ALICE, pause_ms, NOW_MS)
    request.record(ALICE, 50, NOW_MS)
    used.exempt.record(20, NOW_MS)
    found = of_clients(used)
    assert math.isnan(found.pop(("request_throttle_time", "alice", "app")))
    assert found == {
        ("produce_byte_rate", "alice", "app"): 300,
        ("produce_throttle_time", "alice", "app"): 2000,
        ("request_request_time", "alice", "app"): 5,
        ("request_exempt_request_time",): 2,
    }


def test_what_may_still_change_and_who_connects() -> None:
    used = quotas(controller_mutation_rate="5")
    used.mutations(ALICE, strict=True).charge(20)
    used.connections.set("10.0.0.1", {"connection_creation_rate": "7"})
    used.connections.record_connection("10.0.0.1", NOW_MS)
    found = scraped(used)
    assert found[("controllermutation_mutation_rate", "alice", "app")] == 2
    assert found[("controllermutation_tokens", "alice", "app")] == 35
    assert found[("socketservermetrics_connection_accept_rate", "", "10.0.0.1")] == 0.1
