"""The listeners' numbers: who is connected, who logged in and who could not."""

from __future__ import annotations

from kafkapy.server.config.kafka_config import KafkaConfig
from kafkapy.server.network.connection_table import ConnectionTable
from kafkapy.server.observability.listener_metrics import ListenerMetrics
from tests.harness.processes.scraped import scrape

CONFIG = KafkaConfig({"listeners": "PLAINTEXT://:1,SSL://:2"})
PREFIX = "server_socketservermetrics"


def test_a_listener_without_clients_is_there() -> None:
    samples = scrape(
        ListenerMetrics([each.name for each in CONFIG.listeners], ConnectionTable(CONFIG))
    )
    assert samples[f"{PREFIX}_connection_count listener=SSL"] == 0
    assert samples[f"{PREFIX}_expired_connections_killed_count listener=PLAINTEXT"] == 0
    assert samples["network_socketserver_expiredconnectionskilledcount"] == 0


def test_logins_and_what_became_of_them() -> None:
    table = ConnectionTable(CONFIG)
    counts = table.logins
    counts.succeeded["SSL", "SSL"] += 5
    counts.handshake_failed("SSL")
    counts.failed["SSL", "PLAIN"] += 2
    counts.renewed["SSL", "PLAIN"] += 3
    counts.failed_to_renew["SSL", "PLAIN"] += 4
    counts.expired_killed["SSL"] += 6
    counts.renewal_times["SSL"].add(0.25)
    counts.renewal_times["SSL"].add(0.75)
    samples = scrape(ListenerMetrics([each.name for each in CONFIG.listeners], table))
    found = {name.removeprefix(f"{PREFIX}_"): value for name, value in samples.items() if value}
    del found["network_socketserver_expiredconnectionskilledcount"]
    assert found == {
        "successful_authentication_total listener=SSL mechanism=SSL": 5,
        "failed_authentication_total listener=SSL mechanism=SSL": 1,
        "failed_authentication_total listener=SSL mechanism=PLAIN": 2,
        "successful_reauthentication_total listener=SSL mechanism=PLAIN": 3,
        "failed_reauthentication_total listener=SSL mechanism=PLAIN": 4,
        "expired_connections_killed_count listener=SSL": 6,
        "reauthentication_latency_max listener=SSL": 750,
        "reauthentication_latency_avg listener=SSL": 500,
    }
    assert samples["network_socketserver_expiredconnectionskilledcount"] == 6
