"""Sets throttles for reassignments, and removes them or restores earlier ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from types import MappingProxyType

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
    return _present(cluster, [*map(_broker, brokers), *map(_topic, topics)])


def _present(cluster: Cluster, resources: Sequence[Resource]) -> dict[Resource, dict[str, str]]:
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
    cluster: Cluster,
    brokers: Iterable[int],
    topics: Iterable[str],
    previous: Throttles,
    restored: Throttles = MappingProxyType({}),
) -> list[Resource]:
    """Delete the throttles of brokers and topics. Those of `previous` get their earlier value, and
    those of `restored` keep their value, unless they were deleted meanwhile: then they stay
    deleted. Returns the resources that have such throttles.

    Raises:
        ApiError: a broker refused.
    """
    keys: dict[Resource, Sequence[str]] = {_broker(b): BROKER_RATES for b in brokers}
    keys |= {_topic(topic): TOPIC_REPLICAS for topic in topics}
    earlier = [resource for resource in keys if resource in {*previous, *restored}]
    present = _present(cluster, earlier) if earlier else {}
    changes, with_earlier = {}, []
    for resource in keys:
        set_keys = present.get(resource, {}).keys()
        sets = {k: v for k, v in previous.get(resource, {}).items() if k in set_keys}
        kept = {*sets, *(set_keys & restored.get(resource, {}).keys())}
        deletes = [key for key in keys[resource] if key not in kept]
        if kept:
            with_earlier.append(resource)
        if sets or deletes:
            changes[resource] = ConfigChanges(sets, deletes)
    alter_many_configs(cluster, changes)
    return with_earlier


def _broker(broker_id: int) -> Resource:
    return Resource(ResourceType.BROKER, str(broker_id))


def _topic(name: str) -> Resource:
    return Resource(ResourceType.TOPIC, name)
