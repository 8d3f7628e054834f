"""API versions that each broker serves (ApiVersions)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kafkapy.client.cluster import Cluster
from kafkapy.client.metadata import Broker
from kafkapy.common.errors import KafkapyError
from kafkapy.protocol.api_keys import API_VERSIONS, ApiKey

# APIs between brokers. They are not listed as missing for brokers that do not offer them.
_BETWEEN_BROKERS: Final = frozenset(
    {
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.ALTER_PARTITION,
        ApiKey.ENVELOPE,
        ApiKey.ALLOCATE_PRODUCER_IDS,
    }
)
# APIs that Kafka 3.9's tool does not have, and so does not list as missing either.
_SINCE_KAFKA_4: Final = frozenset(
    {
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    }
)
# Further APIs of Kafka 3.9's clients, with their versions: those of KRaft clusters.
_KRAFT: Final = {
    55: ("DescribeQuorum", 0, 2),
    80: ("AddRaftVoter", 0, 0),
    81: ("RemoveRaftVoter", 0, 0),
}


def _name(key: int) -> str:
    """Kafka's name of an API: `ListOffsets` for LIST_OFFSETS."""
    return "".join(word.capitalize() for word in ApiKey(key).name.split("_"))


# key -> (name, first version, last version): our APIs, and those that only Kafka's clients have
KNOWN_APIS: Final[dict[int, tuple[str, int, int]]] = {
    **{key: (_name(key), each.first, each.last) for key, each in API_VERSIONS.items()},
    **_KRAFT,
}
_CLIENT_APIS: Final = KNOWN_APIS.keys() - _BETWEEN_BROKERS - _SINCE_KAFKA_4


@dataclass(frozen=True, slots=True)
class ApiSupport:
    """One API of one broker. `offered` is None if the broker does not have it.

    `usable` is the version that our client would choose. If it is None, `mismatch` has the reason:
    "too new" or "too old"; it is empty for an unknown API.
    """

    key: int
    name: str
    offered: tuple[int, int] | None
    usable: int | None = None
    mismatch: str = ""


@dataclass(frozen=True, slots=True)
class BrokerApis:
    """One broker, with its APIs by key or the error of the request."""

    broker: Broker
    apis: tuple[ApiSupport, ...] = ()
    error: KafkapyError | None = None


def broker_api_versions(cluster: Cluster) -> Iterator[BrokerApis]:
    """Request the API versions of every live broker, in the order of ids."""
    for broker_id, broker in sorted(cluster.metadata([]).brokers.items()):
        try:
            offered = cluster.channel(broker_id).api_versions
        except KafkapyError as error:
            yield BrokerApis(broker, error=error)
            continue
        keys = sorted({*offered, *_CLIENT_APIS})
        yield BrokerApis(broker, tuple(_support(key, offered.get(key)) for key in keys))


def _support(key: int, offered: tuple[int, int] | None) -> ApiSupport:
    if key not in KNOWN_APIS:
        return ApiSupport(key, "UNKNOWN", offered)
    name, first, last = KNOWN_APIS[key]
    if offered is None:
        return ApiSupport(key, name, None)
    usable = min(last, offered[1])
    if usable >= max(first, offered[0]):
        return ApiSupport(key, name, offered, usable)
    return ApiSupport(key, name, offered, mismatch="too new" if offered[0] > last else "too old")
