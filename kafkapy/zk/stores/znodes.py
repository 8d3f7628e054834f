"""The JSON of Kafka's znodes: an `encode_` and a `decode_` function for each kind of node.

Readers ignore unknown keys. An unreadable node raises `ZnodeError`, which names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from kafkapy.common.cluster_state import (
    RECOVERED,
    RECOVERING,
    BrokerInfo,
    Endpoint,
    Feature,
    LeaderAndIsr,
    TopicDescription,
)
from kafkapy.common.errors import ConfigError, KafkapyError
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.common.uuid import ZERO_UUID, Uuid
from kafkapy.zk.stores import paths

LOG_DIR_FAILURE_EVENT: Final = 1
PRODUCER_ID_BLOCK_SIZE: Final = 1000

_BARE_PATH: Final = re.compile(rb"[a-z-]+/[!-~]+")
_ENDPOINT: Final = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")


class ZnodeError(KafkapyError):
    """A znode's data does not have Kafka's format."""

    def __init__(self, path: str, problem: object) -> None:
        super().__init__(f"znode {path} cannot be read: {problem}")
        self.path = path


class ProducerIdBlock(NamedTuple):
    """A block of producer ids, both ends included, and its broker."""

    broker_id: int
    start: int
    end: int


class ConfigChange(NamedTuple):
    """The entity of a config change notification; users may be `u/clients/c`."""

    entity_type: str
    entity_name: str


def _is_int32(value: object) -> bool:
    """Whether a value fits into the controller's requests. A larger one cannot be encoded, which
    would end the controller's channels to all brokers.
    """
    return isinstance(value, int) and -(2**31) <= value < 2**31


def _json_object(path: str, data: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise ZnodeError(path, error) from error
    if not isinstance(value, dict):
        raise ZnodeError(path, "not a JSON object")
    return value


def encode_broker(broker: BrokerInfo, timestamp_ms: int) -> bytes:
    """`/brokers/ids/<id>`, version 5."""
    plain = next((e for e in broker.endpoints if e.security_protocol == "PLAINTEXT"), None)
    node: dict[str, Any] = {
        "version": 5,
        "host": plain.host if plain else None,
        "port": plain.port if plain else -1,
        "jmx_port": -1,
        "timestamp": str(timestamp_ms),
        "endpoints": [_endpoint_text(endpoint) for endpoint in broker.endpoints],
    }
    if broker.rack is not None:
        node["rack"] = broker.rack
    node["listener_security_protocol_map"] = {
        endpoint.listener: endpoint.security_protocol for endpoint in broker.endpoints
    }
    node["features"] = {
        feature.name: {"min_version": feature.min_version, "max_version": feature.max_version}
        for feature in broker.features
    }
    return orjson.dumps(node)


def decode_broker(broker_id: int, data: bytes) -> BrokerInfo:
    """Versions 1 (host and port only) to 5."""
    path = paths.broker(broker_id)
    node = _json_object(path, data)
    try:
        if "endpoints" not in node:
            endpoints: tuple[Endpoint, ...] = (Endpoint("PLAINTEXT", node["host"], node["port"]),)
            rack = None
        else:
            protocols = node.get("listener_security_protocol_map", {})
            endpoints = tuple(_endpoint(text, protocols) for text in node["endpoints"])
            rack = node.get("rack")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ZnodeError(path, repr(error)) from error
    texts = [text for e in endpoints for text in (e.host, e.security_protocol)]
    if rack is not None:
        texts.append(rack)
    if not all(isinstance(text, str) for text in texts):
        raise ZnodeError(path, "a host, a security protocol or the rack is not a text")
    if not all(_is_int32(endpoint.port) for endpoint in endpoints):
        raise ZnodeError(path, "a port is not a port number")
    return BrokerInfo(broker_id, endpoints, rack, _features(node))


def _features(node: dict[str, Any]) -> tuple[Feature, ...]:
    """The features of a registration. An unreadable feature counts as missing."""
    try:
        return tuple(
            Feature(name, int(levels["min_version"]), int(levels["max_version"]))
            for name, levels in node.get("features", {}).items()
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return ()


def _endpoint_text(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.listener}://{host}:{endpoint.port}"


def _endpoint(text: str, protocols: Mapping[str, str]) -> Endpoint:
    match = _ENDPOINT.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is not an endpoint")
    listener, host, port = match.groups()
    return Endpoint(listener, host, int(port), protocols.get(listener, listener))


def encode_topic(topic: TopicDescription) -> bytes:
    """`/brokers/topics/<t>`, version 3."""
    node: dict[str, Any] = {"version": 3}
    if not topic.topic_id.is_zero:
        node["topic_id"] = str(topic.topic_id)
    node["partitions"] = _replicas_json(topic.assignment)
    node["adding_replicas"] = _replicas_json(_non_empty(topic.adding_replicas))
    node["removing_replicas"] = _replicas_json(_non_empty(topic.removing_replicas))
    return orjson.dumps(node)


def decode_topic(topic: str, data: bytes) -> TopicDescription:
    """Versions 1 to 3."""
    path = paths.topic(topic)
    node = _json_object(path, data)
    try:
        return TopicDescription(
            topic,
            Uuid.parse(node["topic_id"]) if node.get("topic_id") else ZERO_UUID,
            _replicas(node["partitions"]),
            _replicas(node.get("adding_replicas", {})),
            _replicas(node.get("removing_replicas", {})),
        )
    except (KeyError, TypeError, ValueError, AttributeError, ConfigError) as error:
        raise ZnodeError(path, repr(error)) from error


def _replicas_json(assignment: Mapping[int, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    return {str(partition): assignment[partition] for partition in sorted(assignment)}


def _non_empty(assignment: Mapping[int, tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
    return {partition: replicas for partition, replicas in assignment.items() if replicas}


def _replicas(node: Mapping[str, list[int]]) -> dict[int, tuple[int, ...]]:
    found = {int(partition): tuple(replicas) for partition, replicas in node.items()}
    if not all(_is_int32(broker) for replicas in found.values() for broker in replicas):
        raise ValueError("a replica is not a broker id")
    if not all(0 <= partition < 2**31 for partition in found):
        raise ValueError("a partition's index is not one")
    if not all(found.values()):
        raise ValueError("a partition has no replicas")
    return {partition: found[partition] for partition in sorted(found)}


def encode_partition_state(state: LeaderAndIsr, brokers_zxid: int = 0) -> bytes:
    """`.../partitions/<p>/state`, version 1; the recovery state only while recovering.

    `brokers_zxid` (see `Fence`) is kafkapy's own; Kafka's controllers ignore it.
    """
    node: dict[str, Any] = {
        "controller_epoch": state.controller_epoch,
        "leader": state.leader,
        "version": 1,
        "leader_epoch": state.leader_epoch,
        "isr": state.isr,
    }
    if state.leader_recovery_state != RECOVERED:
        node["leader_recovery_state"] = state.leader_recovery_state
    if brokers_zxid:
        node["brokers_zxid"] = brokers_zxid
    return orjson.dumps(node)


def decode_partition_state(path: str, data: bytes, version: int) -> LeaderAndIsr:
    """A partition's state; `version` is the node's data version: the partition epoch."""
    node = _json_object(path, data)
    try:
        state = LeaderAndIsr(
            leader=node["leader"],
            leader_epoch=node["leader_epoch"],
            isr=tuple(node["isr"]),
            partition_epoch=version,
            controller_epoch=node["controller_epoch"],
            leader_recovery_state=node.get("leader_recovery_state", RECOVERED),
        )
    except (KeyError, TypeError) as error:
        raise ZnodeError(path, repr(error)) from error
    numbers = (state.leader, state.leader_epoch, state.controller_epoch, *state.isr)
    if not all(map(_is_int32, numbers)):
        raise ZnodeError(path, "a broker id or an epoch is not a 32-bit number")
    recovery = state.leader_recovery_state
    if not _is_int32(recovery) or recovery not in (RECOVERED, RECOVERING):
        raise ZnodeError(path, f"the recovery state {recovery} is not known")
    return state


def decode_brokers_zxid(path: str, data: bytes) -> int | None:
    """The zxid up to which the writer of a partition's state had handled broker registrations.
    None if the state has no such field, which Kafka's controllers do not write."""
    zxid = _json_object(path, data).get("brokers_zxid")
    return zxid if type(zxid) is int else None


def encode_controller(broker_id: int, timestamp_ms: int) -> bytes:
    """`/controller`, version 2."""
    return orjson.dumps(
        {
            "version": 2,
            "brokerid": broker_id,
            "timestamp": str(timestamp_ms),
            "kraftControllerEpoch": -1,
        }
    )


def decode_controller(data: bytes) -> int:
    """The controller's broker id."""
    return _int_field(paths.CONTROLLER, data, "brokerid")


def decode_controller_epoch(data: bytes) -> int:
    """`/controller_epoch`: decimal digits."""
    try:
        return int(data)
    except ValueError as error:
        raise ZnodeError(paths.CONTROLLER_EPOCH, error) from error


def encode_cluster_id(cluster_id: str) -> bytes:
    """`/cluster/id`, in which the version is a string."""
    return orjson.dumps({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes) -> str:
    """The cluster id's text."""
    value = _json_object(paths.CLUSTER_ID, data).get("id")
    if not isinstance(value, str):
        raise ZnodeError(paths.CLUSTER_ID, "no 'id'")
    return value


def encode_config(configs: Mapping[str, str]) -> bytes:
    """`/config/<type>/<entity>`."""
    return orjson.dumps({"version": 1, "config": dict(sorted(configs.items()))})


def decode_config(path: str, data: bytes) -> dict[str, str]:
    """A node's configs; an empty node has none."""
    if not data:
        return {}
    configs = _json_object(path, data).get("config")
    if not isinstance(configs, dict):
        raise ZnodeError(path, "no 'config' object")
    return {str(name): str(value) for name, value in configs.items()}


def encode_config_change(change: ConfigChange) -> bytes:
    """`/config/changes/config_change_N`, version 2; the bare path for entity types that Apache
    Kafka 3.9 does not have. Its brokers log an error for unknown types, but ignore data that is not
    JSON.
    """
    entity_path = "/".join(change)
    if change.entity_type not in paths.KAFKA_3_CONFIG_TYPES:
        return entity_path.encode()
    return orjson.dumps({"version": 2, "entity_path": entity_path})


def decode_config_change(path: str, data: bytes) -> ConfigChange:
    """Versions 1 and 2, and the bare path."""
    node = (
        {"entity_path": data.decode()} if _BARE_PATH.fullmatch(data) else _json_object(path, data)
    )
    if node.get("version") == 1:
        entity_type, entity_name = node.get("entity_type"), node.get("entity_name")
    else:
        entity_type, _, entity_name = str(node.get("entity_path")).partition("/")
    if not entity_type or not entity_name:
        raise ZnodeError(path, "it names no entity")
    if not isinstance(entity_type, str) or not isinstance(entity_name, str):
        raise ZnodeError(path, "the type or the name of its entity is not a text")
    return ConfigChange(entity_type, entity_name)


def encode_producer_id_block(block: ProducerIdBlock) -> bytes:
    """`/latest_producer_id_block`, in which both ends are strings."""
    return orjson.dumps(
        {
            "version": 1,
            "broker": block.broker_id,
            "block_start": str(block.start),
            "block_end": str(block.end),
        }
    )


def decode_producer_id_block(data: bytes) -> ProducerIdBlock:
    """The last allocated block."""
    node = _json_object(paths.PRODUCER_ID_BLOCK, data)
    try:
        return ProducerIdBlock(node["broker"], int(node["block_start"]), int(node["block_end"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ZnodeError(paths.PRODUCER_ID_BLOCK, repr(error)) from error


def encode_feature() -> bytes:
    """`/feature` as a Kafka 3.9 controller writes it: enabled, no features."""
    return orjson.dumps({"version": 2, "status": 1, "features": {}})


def encode_partitions(partitions: Iterable[TopicPartition]) -> bytes:
    """The partitions of a preferred election or an ISR notification."""
    rows = [{"topic": tp.topic, "partition": tp.partition} for tp in partitions]
    return orjson.dumps({"version": 1, "partitions": rows})


def decode_partitions(path: str, data: bytes) -> list[TopicPartition]:
    """The partitions named by a preferred election or an ISR notification."""
    try:
        rows = _json_object(path, data)["partitions"]
        return [TopicPartition(str(row["topic"]), int(row["partition"])) for row in rows]
    except (KeyError, TypeError, ValueError) as error:
        raise ZnodeError(path, repr(error)) from error


def encode_reassignments(targets: Mapping[TopicPartition, Sequence[int]]) -> bytes:
    """`/admin/reassign_partitions`: the target replicas of each partition."""
    rows = [
        {"topic": tp.topic, "partition": tp.partition, "replicas": list(replicas)}
        for tp, replicas in targets.items()
    ]
    return orjson.dumps({"version": 1, "partitions": rows})


def decode_reassignments(data: bytes) -> dict[TopicPartition, tuple[int, ...]]:
    """The reassignments that a tool requested. For a partition named twice, the last row counts."""
    path = paths.REASSIGN_PARTITIONS
    try:
        rows = _json_object(path, data)["partitions"]
        targets = {
            TopicPartition(str(row["topic"]), int(row["partition"])): tuple(row["replicas"])
            for row in rows
        }
    except (KeyError, TypeError, ValueError) as error:
        raise ZnodeError(path, repr(error)) from error
    for partition, replicas in targets.items():
        if not all(map(_is_int32, replicas)):
            raise ZnodeError(path, f"a replica of {partition} is not a broker id")
    return targets


def encode_log_dir_event(broker_id: int) -> bytes:
    """`/log_dir_event_notification/log_dir_event_N`: a log directory of the broker failed."""
    return orjson.dumps({"version": 1, "broker": broker_id, "event": LOG_DIR_FAILURE_EVENT})


def decode_log_dir_event(path: str, data: bytes) -> int:
    """The broker that lost a log directory."""
    return _int_field(path, data, "broker")


def _int_field(path: str, data: bytes, name: str) -> int:
    value = _json_object(path, data).get(name)
    if not isinstance(value, int):
        raise ZnodeError(path, f"no number '{name}'")
    return value
