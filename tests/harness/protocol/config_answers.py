"""A broker's answers about configs: DescribeConfigs of a broker, the cluster default and a topic,
and IncrementalAlterConfigs of every key in every scope.

`scripts/conformance --record-configs` records Apache Kafka 3.9's answers in tests/data/configs;
tests/integration/test_configs_of_apache_kafka.py compares ours with them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from kafkapy.admin.configs import Resource
from kafkapy.client.cluster import Cluster
from kafkapy.common.config_def import ConfigType, ResourceType
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.protocol.messages import create_topics, describe_configs, incremental_alter_configs
from tests.harness.processes.waiting import wait_until

DATA: Final = Path(__file__).parents[2] / "data" / "configs"
TOPIC: Final = "described"

# The configs in server.properties besides listeners, log.dirs and zookeeper.connect.
SETTINGS: Final = {
    "broker.id": "0",
    "log.retention.hours": "2",
    "log.local.retention.bytes": "1000",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS",
    "my.own.key": "shown to nobody",
    "listener.name.plaintext.max.connections": "70",
    "password.encoder.secret": "encodes",
    "metrics.num.samples": "3",
}
CLUSTER_DEFAULTS: Final = {"log.retention.ms": "600000", "log.segment.bytes": "2000000"}
OF_BROKER: Final = {
    "log.retention.ms": "500000",
    "listener.name.plaintext.max.connections": "80",
    "leader.replication.throttled.rate": "1000",
    "my.own.dynamic.key": "v",
}
OF_TOPIC: Final = {"segment.bytes": "3000000", "retention.ms": "400000"}

BROKER: Final = Resource(ResourceType.BROKER, "0")
DEFAULT: Final = Resource(ResourceType.BROKER, "")
# By name: the resource, and the prefix of the key's name.
SCOPES: Final = {
    "broker": (BROKER, ""),
    "cluster": (DEFAULT, ""),
    "served listener of broker": (BROKER, "listener.name.plaintext."),
    "served listener of cluster": (DEFAULT, "listener.name.plaintext."),
    "other listener of broker": (BROKER, "listener.name.other."),
    "other listener of cluster": (DEFAULT, "listener.name.other."),
    "mechanism of served listener": (BROKER, "listener.name.plaintext.plain."),
    "topic": (Resource(ResourceType.TOPIC, TOPIC), ""),
}
# Keys that no broker lists.
UNLISTED: Final = (
    *("leader.replication.throttled.rate", "follower.replication.throttled.rate"),
    *("replica.alter.log.dirs.io.max.bytes.per.second", "an.own.key", "super.users"),
    *("allow.everyone.if.no.acl.found", "authorizer.class.name"),
)

_CLASS: Final = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
_LARGEST: Final = {
    ConfigType.SHORT: 2**15 - 1,
    ConfigType.INT: 2**31 - 1,
    ConfigType.LONG: 2**63 - 1,
}
_VALUES: Final = {
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "advertised.listeners": "PLAINTEXT://127.0.0.1:9092",
    "max.connections.per.ip.overrides": "127.0.0.1:7",
}


def prepare(cluster: Cluster) -> None:
    """Create the topic, and set the dynamic configs."""
    topic = create_topics.CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
    topic.configs = [
        create_topics.CreatableTopicConfig(name=k, value=v) for k, v in OF_TOPIC.items()
    ]
    made = cluster.controller_request(create_topics.CreateTopicsRequest(topics=[topic]))
    assert made.topics[0].error_code == 0, made
    cluster.leader_of(TopicPartition(TOPIC, 0))
    for resource, configs in ((DEFAULT, CLUSTER_DEFAULTS), (BROKER, OF_BROKER)):
        row = alter(cluster, resource, configs, validate_only=False)
        assert row.error_code == 0, row
    # A broker of Apache Kafka answers before it has applied them.
    wait_until(lambda: OF_BROKER.keys() <= describe(cluster, BROKER)["configs"].keys(), "in force")


def alter(
    cluster: Cluster, resource: Resource, configs: Mapping[str, str], *, validate_only: bool = True
) -> Any:
    """Alter configs of one resource. Returns the row of the answer."""
    rows = [
        incremental_alter_configs.AlterableConfig(name=name, config_operation=0, value=value)
        for name, value in configs.items()
    ]
    wanted = incremental_alter_configs.AlterConfigsResource(
        resource_type=resource.type, resource_name=resource.name, configs=rows
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[wanted], validate_only=validate_only
    )
    (row,) = cluster.request(request, broker_id=0).responses
    return row


def _described(cluster: Cluster, resource: Resource) -> Any:
    request = describe_configs.DescribeConfigsRequest(
        resources=[
            describe_configs.DescribeConfigsResource(
                resource_type=resource.type, resource_name=resource.name, configuration_keys=None
            )
        ],
        include_synonyms=True,
        include_documentation=True,
    )
    (row,) = cluster.request(request, broker_id=0).results
    return row


def describe(cluster: Cluster, resource: Resource) -> dict[str, Any]:
    """The answer about one resource, as it goes to a file; configs by name."""
    row = _described(cluster, resource)
    configs = {
        config.name: {
            "value": config.value,
            "read_only": config.read_only,
            "source": config.config_source,
            "sensitive": config.is_sensitive,
            "type": config.config_type,
            "synonyms": [[s.name, s.value, s.source] for s in config.synonyms],
            "documentation": _digest(config.documentation),
        }
        for config in sorted(row.configs, key=lambda config: config.name)
    }
    return {"error": [row.error_code, row.error_message], "configs": configs}


def _digest(text: str | None) -> str | None:
    """Enough of a text to compare it."""
    return text and f"{len(text)} {hashlib.sha256(text.encode()).hexdigest()[:12]}"


def texts(cluster: Cluster) -> dict[str, dict[str, str]]:
    """The documentation texts: of the broker's configs, and of the topic's."""
    found = {}
    for kind, resource in (("broker", BROKER), ("topic", Resource(ResourceType.TOPIC, TOPIC))):
        rows = _described(cluster, resource).configs
        found[kind] = {row.name: row.documentation for row in rows if row.documentation}
    return found


def describe_all(cluster: Cluster) -> dict[str, Any]:
    """Descriptions by the name of the resource."""
    unknown = Resource(ResourceType.TOPIC, "no-such-topic")
    resources = {
        "broker": BROKER,
        "cluster": DEFAULT,
        "topic": Resource(ResourceType.TOPIC, TOPIC),
        "unknown topic": unknown,
    }
    return {name: describe(cluster, resource) for name, resource in resources.items()}


def values_to_set(described: Mapping[str, Any]) -> dict[str, dict[str, list[str]]]:
    """Values for brokers and for topics, by key.

    The first value is valid; a number or a boolean is not the default, and is followed by a value
    that cannot be parsed.
    """
    of_broker = {name: ["1", "?"] for name in UNLISTED}
    for name, row in described["broker"]["configs"].items():
        if name.startswith("listener.name.") or name in SETTINGS.keys() - {"log.retention.hours"}:
            continue
        default = next((v for n, v, s in row["synonyms"] if (n, s) == (name, 5)), None)
        of_broker[name] = _values(name, ConfigType(row["type"] or ConfigType.STRING), default)
    of_topic = {"no.such.key": ["1"]}
    for name, row in described["topic"]["configs"].items():
        of_topic[name] = [*_values(name, ConfigType(row["type"]), row["value"]), "-9", "x"]
    return {"broker": of_broker, "topic": of_topic}


def _values(name: str, kind: ConfigType, default: str | None) -> list[str]:
    if name in _VALUES:
        return [_VALUES[name]]
    if kind is ConfigType.BOOLEAN:
        return ["false" if default == "true" else "true", "?"]
    if kind in _LARGEST:
        number = int(default or 0)
        return [str(number - 1 if number == _LARGEST[kind] else number + 1), "?"]
    if kind is ConfigType.DOUBLE:
        return [str(float(default or 0) * 0.9), "?"]
    if kind is ConfigType.CLASS:
        return [default or _CLASS]
    return [default or "x"]


def answers(
    cluster: Cluster, values: Mapping[str, Mapping[str, Iterable[str]]]
) -> dict[str, dict[str, list[str]]]:
    """The values that were set, by scope and answer (code and message, with <key> for the key)."""
    found: dict[str, dict[str, list[str]]] = {scope: {} for scope in SCOPES}
    for scope, (resource, prefix) in SCOPES.items():
        kind = "topic" if resource.type is ResourceType.TOPIC else "broker"
        for key, texts in sorted(values[kind].items()):
            for value in texts:
                row = alter(cluster, resource, {prefix + key: value})
                message = (row.error_message or "").replace(prefix + key, "<key>")
                answer = f"{row.error_code} {message.replace(key, '<key>')}"
                found[scope].setdefault(answer, []).append(f"{key}={value}")
    return found


def read(name: str) -> Any:
    """Read a record of Apache Kafka's answers: `described`, `values` or `altered`."""
    return json.loads((DATA / f"{name}.json").read_text())


def write(name: str, record: Any) -> None:
    """Write a record of answers."""
    DATA.mkdir(exist_ok=True)
    text = json.dumps(record, indent=0, ensure_ascii=False, sort_keys=True)
    (DATA / f"{name}.json").write_text(text + "\n")


def masked(record: Any, places: Mapping[str, str]) -> Any:
    """The record with words instead of this run's addresses and directories."""
    text = json.dumps(record)
    for place, word in places.items():
        text = text.replace(place, word)
    return json.loads(text)
