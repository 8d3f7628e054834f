"""A broker answers requests about configs as Apache Kafka 3.9.1, but for the differences below.

The record is tests/data/configs (`scripts/conformance --record-configs`): every key that Kafka
lists, with value, source, synonyms, type and text; and for every key the answers to setting it for
a broker, the cluster, a listener that is served or not, and a mechanism of one, or for a topic.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import pytest

from kafkapy.client.cluster import Cluster
from tests.harness.processes.broker_process import BrokerProcess
from tests.harness.protocol import config_answers

_KERNEL: Final = "the kernel sizes buffers better (docs/decisions/0013): -1, as in Kafka, leaves it"
DESCRIBED: Final[dict[str, tuple[set[str], str]]] = {
    "group.coordinator.rebalance.protocols": (
        {"value", "synonyms"},
        "the consumer protocol is on as in Kafka 4 (docs/decisions/0053), and share groups (0057)",
    ),
    "group.share.partition.max.record.locks": ({"value", "synonyms"}, "the default of Kafka 4"),
    "zookeeper.connect": ({"value", "source", "synonyms"}, "this broker has the embedded store"),
    "log.retention.hours": (
        {"value"},
        "Kafka shows the default once log.retention.ms is set dynamically, and this as a synonym",
    ),
    "socket.send.buffer.bytes": ({"value", "synonyms"}, _KERNEL),
    "socket.receive.buffer.bytes": ({"value", "synonyms"}, _KERNEL),
    "replica.socket.receive.buffer.bytes": ({"value", "synonyms"}, _KERNEL),
}
"""Fields of a broker's keys that differ, and why."""
OWN: Final = ("kafkapy.", "share.coordinator.", "group.share.max.share.sessions")
"""Ours, and those that came with share groups in Kafka 4."""


class Difference(NamedTuple):
    """An accepted difference in the answers to setting a key.

    `keys` and `theirs` are regular expressions; `ours` is a template that `re.Match.expand` fills
    with the groups of `theirs`.
    """

    keys: str
    theirs: str
    ours: str
    why: str


_ACCEPTED: Final = "0 "
_OF_TOPIC: Final = (
    "Invalid config value for resource ConfigResource(type=TOPIC, name='described'): "
)
ALTERED: Final = (
    Difference(
        ".*",
        "(.* for configuration <key>: Not a number of type (SHORT|INT|LONG))",
        r"\1 (SIZE integer)",
        "the width of the type is named",
    ),
    Difference(
        ".*",
        r"42 Invalid value org\.apache\.kafka\.common\.config\.ConfigException: (Invalid value [?]"
        r" for .*?)(INT|LONG|SHORT) for configuration Invalid dynamic configuration",
        r"42 \1\2 (SIZE integer)",
        "Kafka puts the cause where the value belongs; here it is the message",
    ),
    Difference(
        ".*",
        r"42 Invalid value org\.apache\.kafka\.common\.config\.ConfigException: (Invalid value .*)"
        " for configuration Invalid dynamic configuration",
        r"42 \1",
        "Kafka puts the cause where the value belongs; here it is the message",
    ),
    Difference(
        "(super.users|allow.everyone.if.no.acl.found)=.*",
        _ACCEPTED,
        "42 Cannot update these configs dynamically: Set(<key>)",
        "Kafka stores them as a plug-in's, and they do nothing; who sets them must not believe it",
    ),
    Difference(
        "(log.local.retention.ms|log.retention.bytes)=.*",
        "42 Invalid value .*",
        _ACCEPTED,
        "tiered storage is not served, so that its retention is not compared with the log's",
    ),
    Difference(
        r"(remote\.log\.manager\.(copier|expiration)\.thread\.pool\.size|process\.roles"
        r"|controller\.quorum\.(voters|bootstrap\.servers))=.*",
        "42 Invalid value .*",
        _ACCEPTED,
        "of keys without effect only the type is checked",
    ),
    Difference(
        "metric.reporters=.*",
        "42 Invalid value .*",
        _ACCEPTED,
        "Java classes are not loaded: the key has no effect, and the log reports it",
    ),
    Difference(
        r"remote\.log\.(delete\.on|copy)\.disable=true",
        "40 (It is invalid to set .*)",
        rf"40 {_OF_TOPIC}\1",
        "the resource is named in every refusal of a value",
    ),
    Difference(
        r"message\.format\.version=.*",
        "40 .* is not a valid version",
        _ACCEPTED,
        "of keys without effect only the type is checked",
    ),
    Difference(
        r"max\.connections=[?]",
        _ACCEPTED,
        "42 Invalid value ? for configuration <key>: Not a number of type INT (SIZE integer)",
        "Kafka does not read the limit of a listener that it does not have; no number is one",
    ),
)


class Answers(NamedTuple):
    described: dict[str, Any]
    altered: dict[str, dict[str, list[str]]]


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    log_dir = tmp_path_factory.mktemp("configs") / "logs"
    with (
        BrokerProcess(log_dir, config_answers.SETTINGS) as broker,
        Cluster(broker.bootstrap_servers) as cluster,
    ):
        config_answers.prepare(cluster)
        described = config_answers.describe_all(cluster)
        altered = config_answers.answers(cluster, config_answers.read("values"))
    places = {broker.bootstrap_servers: "BROKER", str(log_dir): "LOGS"}
    return Answers(config_answers.masked(described, places), altered)


@pytest.mark.parametrize("what", ["broker", "cluster", "topic", "unknown topic"])
def test_described_as_apache_kafka_does(ours: Answers, what: str) -> None:
    theirs, found = config_answers.read("described")[what], ours.described[what]
    own = {name for name in found["configs"] if name.startswith(OWN)}
    assert found["error"] == theirs["error"]
    assert found["configs"].keys() - own == theirs["configs"].keys()
    differing = {
        name: {field for field in row if row[field] != found["configs"][name][field]}
        for name, row in theirs["configs"].items()
    }
    expected = {name: fields for name, (fields, _) in DESCRIBED.items()} if what == "broker" else {}
    assert {name: fields for name, fields in differing.items() if fields} == expected
    assert all(found["configs"][name]["documentation"] for name in own)


@pytest.mark.parametrize("scope", config_answers.SCOPES)
def test_set_and_refused_as_apache_kafka_does(ours: Answers, scope: str) -> None:
    theirs = by_setting(config_answers.read("altered")[scope])
    found = by_setting(ours.altered[scope])
    assert found.keys() == theirs.keys()
    wrong = {
        setting: (answer, found[setting])
        for setting, answer in theirs.items()
        if not same(setting, answer, found[setting])
    }
    assert wrong == {}


def test_every_difference_is_one() -> None:
    """Those that Kafka's record does not show any more must go."""
    record = config_answers.read("altered")
    answers = [item for scope in record.values() for item in by_setting(scope).items()]
    for difference in ALTERED:
        assert any(matches(difference, *each) for each in answers), difference


def by_setting(answers: dict[str, list[str]]) -> dict[str, str]:
    return {setting: answer for answer, settings in answers.items() for setting in settings}


def matches(difference: Difference, setting: str, theirs: str) -> re.Match[str] | None:
    if not re.fullmatch(difference.keys, setting):
        return None
    return re.fullmatch(difference.theirs, theirs)


def same(setting: str, theirs: str, ours: str) -> bool:
    """Whether the answers are equal, or differ as one of the differences says."""
    if theirs == ours:
        return True
    sized = re.sub(r"\((16|32|64)-bit integer\)", "(SIZE integer)", ours)
    for difference in ALTERED:
        found = matches(difference, setting, theirs)
        if found is not None and sized == found.expand(difference.ours):
            return True
    return False
