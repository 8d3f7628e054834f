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


def set_inter_broker_throttle(
    cluster: Cluster, plan: ThrottlePlan, rate: int, live: Collection[int]
) -> list[int]:
    """Throttle copies between brokers; `rate` in bytes a second. Returns the brokers that are down,
    which need no throttle.

    Raises:
        ApiError: a broker refused.
    """
    sets: dict[Resource, ConfigChanges] = {
        _topic(topic): ConfigChanges(lists) for topic, lists in plan.topics.items()
    }
    for broker_id in plan.brokers:
        if broker_id in live:
            rates = {LEADER_RATE: str(rate), FOLLOWER_RATE: str(rate)}
            sets[_broker(broker_id)] = ConfigChanges(rates)
    alter_many_configs(cluster, sets)
    return [broker_id for broker_id in plan.brokers if broker_id not in live]


def set_log_dir_throttle(cluster: Cluster, brokers: Iterable[int], rate: int) -> None:
    """Throttle copies between the log directories of brokers; `rate` in bytes a second.

    Raises:
        ApiError: a broker refused.
    """
    change = ConfigChanges({LOG_DIR_RATE: str(rate)})
    alter_many_configs(cluster, {_broker(broker_id): change for broker_id in brokers})


def clear_throttles(
    cluster: Cluster, brokers: Iterable[int], topics: Iterable[str], previous: Throttles
) -> None:
    """Delete the throttles of brokers and topics, and restore those of `previous`.

    Raises:
        ApiError: a broker refused.
    """
    changes = {_broker(b): _clearing(BROKER_RATES, previous.get(_broker(b), {})) for b in brokers}
    changes |= {_topic(t): _clearing(TOPIC_REPLICAS, previous.get(_topic(t), {})) for t in topics}
    alter_many_configs(cluster, changes)


def _clearing(keys: Iterable[str], previous: Mapping[str, str]) -> ConfigChanges:
    return ConfigChanges(previous, [key for key in keys if key not in previous])


def _broker(broker_id: int) -> Resource:
    return Resource(ResourceType.BROKER, str(broker_id))


def _topic(name: str) -> Resource:
    return Resource(ResourceType.TOPIC, name)
