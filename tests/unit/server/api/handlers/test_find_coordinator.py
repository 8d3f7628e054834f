"""FindCoordinator: keys stay when a topic grows, and may be long."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.common.cluster_state import (
    BrokerInfo,
    Endpoint,
    UpdateMetadataCommand,
    UpdateMetadataPartition,
)
from kafkapy.common.share_state import SharePartitionKey
from kafkapy.common.topic_partition import (
    GROUP_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from kafkapy.coordinator.config import ShareConfig
from kafkapy.coordinator.groups.topic_source import NO_TOPICS
from kafkapy.coordinator.shares.share_coordinator import ShareCoordinator
from kafkapy.protocol.messages.find_coordinator import FindCoordinatorRequest
from kafkapy.server.api import handler_table
from kafkapy.server.api.handlers import find_coordinator
from kafkapy.server.requests.turns import SLICE_UNITS, STEP_UNITS_MAX, run_now
from tests.harness.cores.request_contexts import request_context
from tests.harness.cores.server_parts import Parts
from tests.harness.storage.partitions import TOPIC_ID, partition_state

TOPICS = [GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC]
CONTEXT = request_context(10, 6)
KEYS = ["a group", "an id", str(SharePartitionKey("g", TOPIC_ID, 1))]


def created(parts: Parts, key_type: int) -> find_coordinator.Handler:
    """The handler of broker 1. It leads the first of the topic's 50 partitions."""
    parts.groups.coordinator.set_num_partitions(1)
    parts.transactions.coordinator.set_num_partitions(1)
    config = ShareConfig(share_coordinator_state_topic_num_partitions=1)
    coordinator = ShareCoordinator(config, parts.clock, NO_TOPICS)
    shares: Any = SimpleNamespace(service=SimpleNamespace(coordinator=coordinator))
    states = [partition_state(leader=1).state, *[partition_state(leader=2).state] * 49]
    rows = [
        UpdateMetadataPartition(TOPICS[key_type], TOPIC_ID, index, state, (1,))
        for index, state in enumerate(states)
    ]
    brokers = [BrokerInfo(each, (Endpoint(CONTEXT.listener, "b", 9),)) for each in (1, 2)]
    parts.metadata.apply(UpdateMetadataCommand(1, 1, 1, rows, brokers))
    parts.waiter.mark_complete()
    nothing: Any = None
    return find_coordinator.Handler(
        parts.cluster,
        handler_table.coordinators(parts.groups, parts.transactions, shares),
        parts.waiter,
        nothing,
        parts.client_quotas,
        parts.slices,
        parts.tasks,
    )


@pytest.mark.parametrize("key_type", [0, 1, 2])
def test_a_key_stays_where_it_is_when_the_topic_grows(tmp_path: Path, key_type: int) -> None:
    """Its coordinator counts the partitions when it starts, as Apache Kafka's."""
    handler = created(Parts(tmp_path), key_type)
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[KEYS[key_type]])
    response: Any = run_now(handler.handle(CONTEXT, request))
    [found] = response.coordinators
    assert (found.error_code, found.node_id) == (0, 1)


@pytest.mark.parametrize("key_type", [0, 1, 2])
def test_long_keys_do_not_stop_other_clients(tmp_path: Path, key_type: int) -> None:
    """A request for 250 keys of 32 KB, whose hashes are slow, was one step of 3 s."""
    handler = created(Parts(tmp_path), key_type)
    keys = [KEYS[key_type] + str(number) * 30_000 for number in range(9)]
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=keys)
    work: Any = handler.handle(CONTEXT, request)
    costs = list(work)
    assert len(costs) == len(keys)
    assert all(SLICE_UNITS // 2 < cost < STEP_UNITS_MAX for cost in costs)
