"""The checker of in-sync copies knows the end of each log, also of brokers that start again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.zk.stores import paths
from tests.simulation.checkers.base import PartitionKey, Violation
from tests.simulation.checkers.in_sync_copies import InSyncCopies

AT = TopicPartition("orders", 2)
KEY = PartitionKey("id", AT)
STATE = paths.partition_state(*AT)


def replica(end: int, is_leader: bool = False) -> Any:
    return SimpleNamespace(
        is_leader=is_leader,
        leader_epoch=0,
        log=SimpleNamespace(log_end_offset=end),
        in_sync=SimpleNamespace(maximal={1, 5}),
    )


@pytest.fixture
def checker() -> InSyncCopies:
    state = SimpleNamespace(data=orjson.dumps({"leader": 1, "leader_epoch": 0, "isr": [1]}))
    ensemble = SimpleNamespace(tree=SimpleNamespace(nodes={STATE: state}))
    cluster: Any = SimpleNamespace(
        plan=SimpleNamespace(config={"min.insync.replicas": "1"}),
        history=SimpleNamespace(losses={}),
        committed_ends={KEY: 24},
        unclean_leaders={},
        allows_unclean_elections=True,
        world=SimpleNamespace(
            ensemble=ensemble,
            events=SimpleNamespace(now_us=0),
            nodes={number: SimpleNamespace(last_power_cut_us=-1) for number in (1, 5)},
        ),
    )
    return InSyncCopies(cluster)


NODE_1: Any = SimpleNamespace(broker_id=1)
NODE_5: Any = SimpleNamespace(broker_id=5)


def test_a_follower_that_is_killed_in_the_step_of_an_append_has_it(checker: InSyncCopies) -> None:
    """It had requested the next records before the kill, and was starting again."""
    checker.on_partition(NODE_5, KEY, replica(21))
    with pytest.raises(Violation, match="counts 5 as in sync, whose log ends at 21"):
        checker.on_partition(NODE_1, KEY, replica(24, is_leader=True))
    checker.on_stopped_serving(NODE_5, KEY, replica(24))
    checker.on_partition(NODE_1, KEY, replica(24, is_leader=True))


@pytest.mark.parametrize("is_allowed", [True, False])
def test_a_leader_that_is_replaced_uncleanly_has_its_records_alone(
    checker: InSyncCopies, is_allowed: bool
) -> None:
    """Seed 24160373: the elected leader was down, and never led. No record was lost."""
    checker.cluster.unclean_leaders[STATE] = 1
    checker.cluster.allows_unclean_elections = is_allowed
    checker.on_partition(NODE_5, KEY, replica(24))
    checker._acknowledged(AT, 22, 23)
    if is_allowed:
        checker.on_end()
        return
    with pytest.raises(Violation, match=r"are on brokers \[5\]: in sync are \[1\]"):
        checker.on_end()


def test_a_leader_that_is_replaced_by_one_in_sync_has_no_records_alone(
    checker: InSyncCopies,
) -> None:
    checker.on_partition(NODE_5, KEY, replica(24))
    checker._acknowledged(AT, 22, 23)
    with pytest.raises(Violation, match=r"are on brokers \[5\]: in sync are \[1\]"):
        checker.on_end()
