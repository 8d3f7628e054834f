"""A config that is accepted and does nothing is named; and none is that nobody knows of."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from kafkapy.common import topic_configs
from kafkapy.common.topic_configs import TOPIC_CONFIGS
from kafkapy.coordinator.config import GroupConfig, ShareConfig, TransactionConfig
from kafkapy.metadata.dynamic_broker_configs import ALL_DYNAMIC
from kafkapy.server.config.broker_config_table import AT_START_ONLY, NO_EFFECT
from kafkapy.server.config.ineffective_configs import (
    ineffective_broker_configs,
    warn_of_topic_configs,
    without_secrets,
)
from kafkapy.server.config.kafka_config import BROKER_CONFIGS
from kafkapy.storage.log_config import LogConfig
from tests.harness.tools.syntax_trees import nodes_of

ROOT = Path(__file__).parents[4] / "kafkapy"
TABLES = (
    "server/config/broker_config_table.py",
    "server/config/unserved_configs.py",
    "common/topic_configs.py",
    "metadata/dynamic_broker_configs.py",
)
PACKAGES = (
    *("server", "metadata", "storage", "coordinator", "controller"),
    *("zk", "common", "replication", "record", "security"),
)
OF_LOGS = {field.name for field in fields(LogConfig)}
TYPED = OF_LOGS.union(
    *({f.name for f in fields(kind)} for kind in (GroupConfig, ShareConfig, TransactionConfig))
)


class Words:
    """Words in the code of some modules: strings, patterns of f-strings, and attributes."""

    def __init__(self, paths: list[Path]) -> None:
        self.strings: set[str] = set()
        self.attributes: set[str] = set()
        self.patterns: set[re.Pattern[str]] = set()
        for path in paths:
            for node in nodes_of(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    self.strings.add(node.value)
                elif isinstance(node, ast.Attribute):
                    self.attributes.add(node.attr)
                elif isinstance(node, ast.JoinedStr):
                    self.patterns.add(re.compile("".join(map(pattern_of, node.values))))

    def reads(self, name: str) -> bool:
        """Whether the config of that name is read: as an attribute of a typed config, else by its
        name, which may be put together of parts that are strings of the code too."""
        attribute = name.replace(".", "_")
        if attribute in self.attributes & TYPED or attribute in self.strings:
            return True
        if attribute in OF_LOGS:  # their names are written elsewhere too, for other topics
            return False
        matches = (pattern.fullmatch(name) for pattern in self.patterns)
        return name in self.strings or any(
            found is not None and self.strings.issuperset(found.groups()) for found in matches
        )


def pattern_of(part: ast.expr) -> str:
    return re.escape(part.value) if isinstance(part, ast.Constant) else "(.+)"


@cache
def production() -> Words:
    """The words of the broker's packages, without the config tables."""
    found = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return Words([path for path in found if str(path.relative_to(ROOT)) not in TABLES])


def unread_by(words: Words) -> Iterator[str]:
    """The broker's configs that nothing reads. A topic's config is read with its twins."""
    twins = {twin: key for key in TOPIC_CONFIGS.keys.values() for twin in key.synonyms}
    for name in BROKER_CONFIGS.keys:
        if not words.reads(twins[name].name if name in twins else name):
            yield name


def test_the_table_says_which_configs_nothing_reads() -> None:
    assert set(unread_by(production())) == NO_EFFECT.keys()


def test_the_table_of_topics_says_so_too() -> None:
    unread = {name for name in TOPIC_CONFIGS.keys if not production().reads(name)}
    assert unread == topic_configs.NO_EFFECT.keys()


def test_what_can_be_set_while_a_broker_runs_is_read_then_or_named() -> None:
    """Dynamic configs that are not the log's must be read by one of a few modules, or be named."""
    appliers = (
        "addresses",
        "config_applier",
        "connection_limits",
        "creation_rates",
        "listener_set",
        "listener_tls",
        "listener_security",
        "listeners",
        "kafka_config",
        "kerberos",
        "node_security",
        "oauth",
    )
    others = (
        "replication/replication_quota.py",
        "security/oauth/login.py",
        "security/tls/stores.py",
    )
    others += ("security/kerberos/names.py", "security/kerberos/login.py", "security/sasl/jaas.py")
    others += ("security/tls/distinguished_name.py",)
    rooms = {path.stem: path for path in (ROOT / "server").rglob("*.py")}
    paths = [rooms[name] for name in appliers] + [ROOT / path for path in others]
    words = Words(paths)
    unread = set(unread_by(words)) & ALL_DYNAMIC - NO_EFFECT.keys()
    logs = {key.synonyms[0] for key in TOPIC_CONFIGS.keys.values() if key.synonyms}
    at_start = {"producer.id.expiration.ms", "transaction.partition.verification.enable"}
    assert (unread | at_start) - logs == AT_START_ONLY


@pytest.mark.parametrize(
    ("names", "dynamic", "named"),
    [
        (["log.dirs", "listener.name.x.plain.sasl.jaas.config", "zookeeper.connect"], False, []),
        (["num.io.threads", "create.topic.policy.class.name"], False, None),
        (["listener.name.x.num.network.threads"], True, None),
        (["kafkapy.metrics.prot", "ssl.keystore.locaton", "listener.name.x.sasl.foo"], False, None),
        (["remote.log.storage.system.enable", "zookeeper.sync.time.ms"], False, None),
        (["num.replica.fetchers"], False, []),
        (["num.replica.fetchers"], True, None),
        (["leader.replication.throttled.rate", "log.retention.ms", "max.connections"], True, []),
    ],
)
def test_what_does_nothing_is_named(
    names: list[str], dynamic: bool, named: list[str] | None
) -> None:
    expected = sorted(names) if named is None else named
    assert [name for name, _ in ineffective_broker_configs(names, dynamic=dynamic)] == expected


def test_a_topic_has_such_configs_too(caplog: pytest.LogCaptureFixture) -> None:
    warn_of_topic_configs("t", ["retention.ms", "remote.storage.enable"])
    [record] = caplog.records
    assert record.getMessage() == (
        "The config 'remote.storage.enable' of topic t has no effect: tiered storage is not served"
    )


def test_what_kafka_removed_is_answered_with_what_to_write_instead() -> None:
    given = ("advertised.host.name", "advertised.port", "port")
    advertised = "advertised.listeners=PLAINTEXT://HOST:PORT"
    assert dict(ineffective_broker_configs(given)) == {
        "advertised.host.name": f"has no effect since Kafka 3.0: write instead {advertised}",
        "advertised.port": f"has no effect since Kafka 3.0: write instead {advertised}",
        "port": "has no effect since Kafka 3.0: write instead listeners=PLAINTEXT://HOST:PORT",
    }


def test_a_name_with_a_typo_is_told_with_the_one_that_was_meant() -> None:
    assert list(ineffective_broker_configs(["num.partitons", "my.plugin.setting"])) == [
        ("my.plugin.setting", "is not known and has no effect"),
        ("num.partitons", "is not known and has no effect; did you mean num.partitions?"),
    ]


def test_values_that_may_be_secret_are_hidden() -> None:
    """A plug-in's password, and a password with a mistyped name, were logged."""
    secrets = (
        "listener.name.a.ssl.keystore.password",
        "listener.name.a.plain.sasl.jaas.config",
        "password.encoder.secret",
        "acme.vault.token",
        "listener.name.a.ssl.keystore.pasword",
    )
    public = (
        "log.retention.ms",
        "listener.name.a.ssl.keystore.location",
        "leader.replication.throttled.rate",
    )
    expected = {**dict.fromkeys(secrets, "[hidden]"), **dict.fromkeys(public, "x")}
    assert without_secrets(dict.fromkeys((*secrets, *public), "x")) == expected
