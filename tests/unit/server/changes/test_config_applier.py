"""A dynamic config takes effect on the logs at once, or not at all."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kafkapy.common.config_def import ResourceType
from kafkapy.common.errors import ConfigError
from kafkapy.common.uuid import ZERO_UUID
from kafkapy.controller.events import UncleanElectionEnabled
from kafkapy.metadata.client_metrics import ClientInformation
from kafkapy.metadata.client_quotas import QuotaKind, Tags
from kafkapy.security.password_encoder import SECRET, PasswordEncoder
from kafkapy.security.sasl.scram import ScramCredential
from kafkapy.server.changes import config_applier
from tests.harness.cores.ports import SeededRandom
from tests.harness.cores.server_parts import Parts
from tests.harness.storage.partitions import batch, partition_state

BOTH = (1, 2)
SCRAM = ScramCredential(b"salt", b"stored", b"server", 4096).text()


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    made = Parts(tmp_path, properties={"log.retention.ms": "1"})
    made.lead("t")
    made.lead("u")
    return made


def apply(parts: Parts, entity_type: str, name: str, **configs: str) -> None:
    applier = parts.config_applier()
    applier.apply(entity_type, name, {k.replace("_", "."): v for k, v in configs.items()})


def retention_ms(parts: Parts) -> list[int]:
    return [parts.replicas.get(topic, 0).log.config.retention_ms for topic in ("t", "u")]


def test_a_topics_config_reaches_its_logs_and_its_description(parts: Parts) -> None:
    apply(parts, "topics", "t", retention_ms="5")
    assert retention_ms(parts) == [5, 1]
    assert parts.configs.topic("t", keys=["retention.ms"])[0].value == "5"
    apply(parts, "topics", "t")
    assert retention_ms(parts) == [1, 1]


def test_broker_configs_reach_all_logs_the_narrower_first(parts: Parts) -> None:
    apply(parts, "brokers", "<default>", log_retention_ms="2")
    assert retention_ms(parts) == [2, 2]
    apply(parts, "brokers", "1", log_retention_ms="3")
    apply(parts, "topics", "u", retention_ms="4")
    assert retention_ms(parts) == [3, 4]
    apply(parts, "brokers", "1")
    assert retention_ms(parts) == [2, 4]


@pytest.mark.parametrize(
    ("entity_type", "name"), [("brokers", "2"), ("users", "1"), ("clients", "<default>")]
)
def test_configs_of_others_are_none_of_its_business(
    parts: Parts, entity_type: str, name: str
) -> None:
    apply(parts, entity_type, name, log_retention_ms="2")
    assert retention_ms(parts) == [1, 1]


def test_quotas_of_users_and_clients_are_in_force(parts: Parts) -> None:
    quotas = parts.client_quotas
    applier = parts.config_applier()
    applier.apply("users", "a%20b", {"producer_byte_rate": "5", "SCRAM-SHA-256": SCRAM})
    applier.apply("clients", "<default>", {"consumer_byte_rate": "6"})
    assert quotas.by_kind[QuotaKind.PRODUCE].table.find("a b", "c") == (Tags("a b", ""), 5)
    assert quotas.by_kind[QuotaKind.FETCH].table.find("a b", "c") == (Tags("", "c"), 6)
    assert parts.scram_credentials.lookup_for("SCRAM-SHA-256")("a b") is not None
    with pytest.raises(ConfigError, match="producer_byte_rate=much"):
        applier.apply("users", "a%20b", {"producer_byte_rate": "much"})
    assert quotas.by_kind[QuotaKind.PRODUCE].table.find("a b", "c") == (Tags("a b", ""), 5)
    assert parts.scram_credentials.lookup_for("SCRAM-SHA-256")("a b") is None
    with pytest.raises(ConfigError, match="SCRAM-SHA-256"):
        applier.apply("users", "a%20b", {"producer_byte_rate": "7", "SCRAM-SHA-256": "x"})
    assert quotas.by_kind[QuotaKind.PRODUCE].table.find("a b", "c") == (Tags("a b", ""), 7)
    applier.apply("users", "a%20b", {})
    applier.apply("clients", "<default>", {})
    assert not quotas.are_set


def test_rates_of_addresses_are_in_force(parts: Parts, caplog: pytest.LogCaptureFixture) -> None:
    never = {"connection_creation_rate": "0"}

    async def scenario() -> None:
        applier = parts.config_applier()
        for name in ("10.0.0.1", "localhost", "nowhere.invalid"):
            applier.apply("ips", name, never)
        applier.apply("ips", "localhost", {"connection_creation_rate": "none"})
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))
        assert caplog.text.count("Cannot apply the configs of ips") == 2
        connected = parts.client_quotas.connections.record_connection
        assert [connected(host, 1) for host in ("10.0.0.1", "127.0.0.1", "::1")] == [1000, 1000, 0]
        applier.apply("ips", "<default>", never)
        applier.apply("ips", "10.0.0.1", {})
        assert [connected(host, 2) for host in ("10.0.0.1", "::1")] == [1000, 1000]
        applier.apply("ips", "<default>", {})
        assert [connected(host, 3) for host in ("10.0.0.1", "::1")] == [0, 0]

    asyncio.run(scenario())


def test_the_newest_rate_of_a_host_counts(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first look-up of its name took longer than the second."""

    async def scenario() -> None:
        answered: list[asyncio.Future[str]] = []

        async def resolve(host: str) -> str:
            answered.append(asyncio.get_running_loop().create_future())
            return await answered[-1]

        async def turns() -> None:
            for _ in range(3):
                await asyncio.sleep(0)

        monkeypatch.setattr(config_applier, "resolve", resolve)
        applier = parts.config_applier()
        for rate in ("0", "5"):
            applier.apply("ips", "app.example", {"connection_creation_rate": rate})
        while not all(each.done() for each in answered) or len(answered) < 2:
            await turns()
            for each in reversed(answered):
                if not each.done():
                    each.set_result("10.0.0.1")
                    await turns()
        assert parts.client_quotas.connections.record_connection("10.0.0.1", 1) == 0

    asyncio.run(scenario())


def test_configs_of_groups_reach_the_coordinator_within_this_brokers_bounds(parts: Parts) -> None:
    apply(parts, "groups", "g%2F1", consumer_session_timeout_ms="99000")
    core = parts.groups.coordinator._core
    assert core.own_config("g/1", "consumer.session.timeout.ms", 1) == 60_000
    (entry,) = parts.configs.group("g/1", ["consumer.session.timeout.ms"])
    assert (entry.value, parts.configs.names(ResourceType.GROUP)) == ("99000", ["g/1"])
    with pytest.raises(ConfigError):
        apply(parts, "groups", "g%2F1", consumer_session_timeout_ms="never")
    assert core.own_config("g/1", "consumer.session.timeout.ms", 1) == 60_000
    apply(parts, "groups", "g%2F1")
    assert core.own_config("g/1", "consumer.session.timeout.ms", 1) == 1
    assert parts.configs.names(ResourceType.GROUP) == []


def test_subscriptions_to_client_metrics_are_in_force(parts: Parts) -> None:
    client = ClientInformation("", "c", "s", "1", "10.0.0.1", "1")
    apply(parts, "client-metrics", "a%20b", metrics="x")
    with pytest.raises(ConfigError, match="Illegal client matching pattern"):
        apply(parts, "client-metrics", "c", match="x")
    _, instance = parts.telemetry.get(0, ZERO_UUID, client)
    assert instance.requested_metrics.metrics == ("x",)
    assert parts.configs.names(ResourceType.CLIENT_METRICS) == ["a b"]


@pytest.mark.parametrize(
    ("entity_type", "name", "key"),
    [
        ("topics", "t", "retention_ms"),
        ("brokers", "1", "log_retention_ms"),
        ("brokers", "<default>", "log_retention_ms"),
    ],
)
def test_what_is_not_allowed_leaves_the_old_in_force(
    parts: Parts, entity_type: str, name: str, key: str
) -> None:
    apply(parts, entity_type, name, **{key: "7"})
    with pytest.raises(ConfigError, match="never"):
        apply(parts, entity_type, name, **{key: "never"})
    assert retention_ms(parts)[0] == 7
    assert parts.configs.topic("t", keys=["retention.ms"])[0].value == "7"
    apply(parts, "topics", "u", retention_ms="8")
    assert retention_ms(parts) == [7, 8]


@pytest.mark.parametrize(
    ("entity_type", "name"), [("topics", "t"), ("brokers", "1"), ("brokers", "<default>")]
)
def test_a_lower_minimum_of_replicas_commits_what_waited_for_it(
    parts: Parts, entity_type: str, name: str
) -> None:
    apply(parts, entity_type, name, min_insync_replicas="2")
    parts.apply_leader_and_isr(
        partition_state(isr=(1,), replicas=BOTH, leader_epoch=1, partition_epoch=1)
    )
    parts.replicas.append("t", 0, batch(), 1, 11)
    log = parts.replicas.get("t", 0).log
    assert log.high_watermark == 0
    apply(parts, entity_type, name, min_insync_replicas="1")
    assert log.high_watermark == 1


def test_the_controller_hears_at_once_that_unclean_leaders_are_allowed(parts: Parts) -> None:
    """A partition may be waiting for nothing else."""
    apply(parts, "topics", "t", unclean_leader_election_enable="false")
    assert parts.controller.events == []
    apply(parts, "topics", "t", unclean_leader_election_enable="true")
    assert parts.controller.events == [UncleanElectionEnabled("t")]
    apply(parts, "brokers", "<default>", unclean_leader_election_enable="true")
    apply(parts, "brokers", "<default>")
    assert parts.controller.unclean_allowed == [True, False]


def test_a_topic_that_is_elsewhere_is_remembered_only(parts: Parts) -> None:
    apply(parts, "topics", "elsewhere", retention_ms="5")
    assert parts.configs.topic_overrides["elsewhere"] == {"retention.ms": "5"}


def test_replication_rates_follow_the_dynamic_configs(parts: Parts) -> None:
    quotas = parts.replicas.quotas
    apply(parts, "brokers", "<default>", leader_replication_throttled_rate="10")
    apply(parts, "brokers", "1", follower_replication_throttled_rate="20")
    assert (quotas.leader.limit, quotas.follower.limit) == (10, 20)
    with pytest.raises(ConfigError):
        apply(parts, "brokers", "1", follower_replication_throttled_rate="fast")
    assert (quotas.leader.limit, quotas.follower.limit) == (10, 20)
    apply(parts, "brokers", "<default>")
    apply(parts, "brokers", "1")
    assert (quotas.leader.limit, quotas.follower.limit) == (None, None)


def test_credentials_of_users_let_them_in(parts: Parts, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    text = SCRAM
    apply(parts, "users", "alice", **{"SCRAM-SHA-256": text})
    assert parts.scram_credentials.lookup_for("SCRAM-SHA-256")("alice") is not None
    assert "stored_key" not in caplog.text


def test_listeners_follow_this_brokers_own_configs(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def prepare(before: Mapping[str, str], after: Mapping[str, str]) -> Callable[[], None]:
        if after.get("my.key") == "bad":
            raise ConfigError("bad store")
        said.append(f"{before.get('my.key')} -> {after.get('my.key')}")
        return lambda: said.append("made")

    monkeypatch.setattr(parts.listener_changes, "prepare", prepare)
    apply(parts, "brokers", "1", my_key="a")
    apply(parts, "brokers", "<default>", my_key="b")
    for bad in ({"my_key": "bad"}, {"my_key": "b", "log_retention_ms": "never"}):
        with pytest.raises(ConfigError):
            apply(parts, "brokers", "1", **bad)
    assert said == ["None -> a", "made", "a -> b"]
    assert parts.configs.layers.dynamic_broker == {"my.key": "a"}


def test_passwords_are_decoded_for_the_broker_and_are_not_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    parts = Parts(tmp_path, properties={SECRET: "s"})
    name = "listener.name.a.ssl.key.password"
    encoded = PasswordEncoder("s").encode("changeit", SeededRandom(1).bytes)
    with caplog.at_level(logging.INFO):
        parts.config_applier().apply("brokers", "1", {name: encoded, "message.max.bytes": "99"})
    assert parts.configs.layers.dynamic_broker == {name: "changeit", "message.max.bytes": "99"}
    shown = {entry.name: entry for entry in parts.configs.broker()}
    assert (shown[name].value, shown[name].is_sensitive) == (None, True)
    assert "changeit" not in caplog.text
    assert encoded not in caplog.text
    assert "'message.max.bytes': '99'" in caplog.text


def test_rates_of_new_connections_are_taken_over(parts: Parts) -> None:
    creations = parts.client_quotas.creations
    apply(parts, "brokers", "<default>", max_connection_creation_rate="9")
    apply(parts, "brokers", "1", **{"listener.name.plaintext.max.connection.creation.rate": "3"})
    assert (creations.broker.limit, creations.listeners["PLAINTEXT"].limit) == (9, 3)
    apply(parts, "brokers", "1")
    assert creations.listeners["PLAINTEXT"].limit == 9


def test_values_that_may_be_secret_are_not_logged(
    parts: Parts, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    apply(parts, "brokers", "1", acme_vault_token="hush", log_retention_ms="77")
    assert "'acme.vault.token': '[hidden]', 'log.retention.ms': '77'" in caplog.text
    assert "hush" not in caplog.text
