"""Paths of Kafka's nodes in ZooKeeper (`kafka.zk.ZkData`), and the encoding of entity names."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, unquote

CLUSTER_ID: Final = "/cluster/id"
BROKER_IDS: Final = "/brokers/ids"
BROKER_SEQUENCE: Final = "/brokers/seqid"
TOPICS: Final = "/brokers/topics"
CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
DELETE_TOPICS: Final = "/admin/delete_topics"
REASSIGN_PARTITIONS: Final = "/admin/reassign_partitions"
PREFERRED_REPLICA_ELECTION: Final = "/admin/preferred_replica_election"
ISR_CHANGE_NOTIFICATION: Final = "/isr_change_notification"
LOG_DIR_EVENT_NOTIFICATION: Final = "/log_dir_event_notification"
CONFIG: Final = "/config"
CONFIG_CHANGES: Final = "/config/changes"
PRODUCER_ID_BLOCK: Final = "/latest_producer_id_block"
FEATURE: Final = "/feature"
FEATURE_LIMITS: Final = "/kafkapy/feature_limits"
ACLS: Final = "/kafka-acl"
PREFIXED_ACLS: Final = "/kafka-acl-extended/prefixed"
ACL_CHANGES: Final = "/kafka-acl-changes"
EXTENDED_ACL_CHANGES: Final = "/kafka-acl-extended-changes"
ACL_CHANGE_FOLDERS: Final = (ACL_CHANGES, EXTENDED_ACL_CHANGES)
TOKENS: Final = "/delegation_token/tokens"
TOKEN_CHANGES: Final = "/delegation_token/token_changes"

CONFIG_CHANGE_PREFIX: Final = "config_change_"
LOG_DIR_EVENT_PREFIX: Final = "log_dir_event_"
ACL_CHANGE_PREFIX: Final = "acl_changes_"
TOKEN_CHANGE_PREFIX: Final = "token_change_"

KAFKA_3_CONFIG_TYPES: Final = ("topics", "clients", "users", "brokers", "ips")
CONFIG_TYPES: Final = (*KAFKA_3_CONFIG_TYPES, "client-metrics", "groups")
"""In ZooKeeper mode, Apache Kafka does not have the last two."""
DEFAULT_ENTITY: Final = "<default>"

PERSISTENT_PATHS: Final = (
    "/consumers",
    BROKER_IDS,
    TOPICS,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    BROKER_SEQUENCE,
    ISR_CHANGE_NOTIFICATION,
    PRODUCER_ID_BLOCK,
    LOG_DIR_EVENT_NOTIFICATION,
    *(f"{CONFIG}/{kind}" for kind in KAFKA_3_CONFIG_TYPES),
)


def broker(broker_id: int) -> str:
    """`/brokers/ids/<id>`."""
    return f"{BROKER_IDS}/{broker_id}"


def topic(name: str) -> str:
    """`/brokers/topics/<topic>`."""
    return f"{TOPICS}/{name}"


def partitions(name: str) -> str:
    """`/brokers/topics/<topic>/partitions`."""
    return f"{TOPICS}/{name}/partitions"


def partition(name: str, index: int) -> str:
    """`/brokers/topics/<topic>/partitions/<index>`."""
    return f"{TOPICS}/{name}/partitions/{index}"


def partition_state(name: str, index: int) -> str:
    """`/brokers/topics/<topic>/partitions/<index>/state`."""
    return f"{TOPICS}/{name}/partitions/{index}/state"


def config(entity_type: str, entity_name: str) -> str:
    """`/config/<type>/<entity>`; the name is already sanitized if its type requires that."""
    return f"{CONFIG}/{entity_type}/{entity_name}"


def delete_topic(name: str) -> str:
    """`/admin/delete_topics/<topic>`."""
    return f"{DELETE_TOPICS}/{name}"


def sanitize(name: str) -> str:
    """A name with any characters as a path part (`Sanitizer`): Java's URLEncoder, `*` as %2A.

    `.` and `..` are encoded too, because ZooKeeper does not allow them as parts.
    """
    if name in (".", ".."):
        return name.replace(".", "%2E")
    return quote(name, safe="").replace("~", "%7E")


def desanitize(part: str) -> str:
    """The original of a sanitized name."""
    return unquote(part)


def java_name(name: str) -> str:
    """An enum's name as Kafka writes it in paths and texts: TRANSACTIONAL_ID as TransactionalId."""
    return "".join(word.capitalize() for word in name.split("_"))


def sequence_of(name: str) -> int:
    """The number at the end of a sequential node's name (ten digits, negative after 2^31)."""
    digits = name[name.rindex("_") + 1 :]
    return int(digits)
