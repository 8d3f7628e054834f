"""Sets throttles for reassignments, and removes them or restores earlier ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kafkapy.admin.configs import (
    ConfigChanges,
    Resource,
    alter_many_configs,
    describe_configs,
    dynamic_only,
)
from kafkapy.admin.planning.throttle_plan import (
    BROKER_RATES,
    FOLLOWER_RATE,
    LEADER_RATE,
    LOG_DIR_RATE,
    TOPIC_REPLICAS,
    ThrottlePlan,
)
from kafkapy.client.cluster import Cluster
from kafkapy.common.config_def import ResourceType
from kafkapy.tools.reassign.throttle_record import Throttles


def present_throttles(
    cluster: Cluster, brokers: Iterable[int], topics: Iterable[str]
) -> dict[Resource, dict[str, str]]:
    """The throttles that are set on live brokers and topics.

    Raises:
        ApiError: a broker refused.
    """
    resources = [*map(_broker, brokers), *map(_topic, topics)]
    found = describe_configs(cluster, resources, synonyms=False)
    keys = {*BROKER_RATES, *TOPIC_REPLICAS}
    present = {
        resource: {
            entry.name: entry.value
            for entry in dynamic_only(found[resource], resource)
            if entry.name in keys and entry.value is not None
        }
        for resource in resources
    }
    return {resource: configs for resource, configs in present.items() if configs}


def inter_broker_throttle(
    plan: ThrottlePlan, rate: int, live: Collection[int]
) -> dict[Resource, dict[str, str]]:
    """The throttle of copies between brokers; `rate` in bytes a second. Brokers that are down are
    left out.
    """
    rates = {LEADER_RATE: str(rate), FOLLOWER_RATE: str(rate)}
    lists = {_topic(topic): dict(lists) for topic, lists in plan.topics.items()}
    return lists | {_broker(b): dict(rates) for b in plan.brokers if b in live}


def log_dir_throttle(brokers: Iterable[int], rate: int) -> dict[Resource, dict[str, str]]:
    """The throttle of copies between the log directories of brokers; `rate` in bytes a second."""
    return {_broker(broker_id): {LOG_DIR_RATE: str(rate)} for broker_id in brokers}


def set_throttles(cluster: Cluster, throttles: Throttles) -> None:
    """Set throttles.

    Raises:
        ApiError: a broker refused.
    """
    changes = {resource: ConfigChanges(configs) for resource, configs in throttles.items()}
    alter_many_configs(cluster, changes)


def clear_throttles(
    cluster: Cluster, brokers: Iterable[int], topics: Iterable[str], previous: Throttles
) -> list[Resource]:
    """Delete the throttles of brokers and topics, and restore those of `previous`. Returns the
    resources that have earlier throttles again.

    Raises:
        ApiError: a broker refused.
    """
    changes = {
        _broker(b): _clear_changes(BROKER_RATES, previous.get(_broker(b), {})) for b in brokers
    }
    changes |= {
        _topic(t): _clear_changes(TOPIC_REPLICAS, previous.get(_topic(t), {})) for t in topics
    }
    alter_many_configs(cluster, changes)
    return [resource for resource in changes if resource in previous]


def _clear_changes(keys: Iterable[str], previous: Mapping[str, str]) -> ConfigChanges:
    return ConfigChanges(previous, [key for key in keys if key not in previous])


def _broker(broker_id: int) -> Resource:
    return Resource(ResourceType.BROKER, str(broker_id))


def _topic(name: str) -> Resource:
    return Resource(ResourceType.TOPIC, name)
