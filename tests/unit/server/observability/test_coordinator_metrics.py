"""The coordinators' numbers: groups, transactional ids, markers that wait, times of loading."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.coordinator.effects import Producer
from kafkapy.coordinator.groups.consumer.messages import ConsumerHeartbeat
from kafkapy.coordinator.groups.messages import CommitOffsets, OffsetToCommit
from kafkapy.coordinator.transactions.messages import (
    AddPartitions,
    EndTransaction,
    InitProducerId,
    InitProducerIdResult,
)
from kafkapy.server.observability.coordinator_metrics import CoordinatorMetrics
from tests.harness.cores.server_parts import Parts
from tests.harness.processes.scraped import scrape
from tests.harness.storage.partitions import partition_state

IDS = "coordinator_transaction_transactionstatemanager_numtransactionalids"
MARKERS = "coordinator_transaction_transactionmarkerchannelmanager"


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    return Parts(tmp_path)


def test_groups(parts: Parts) -> None:
    parts.coordinate()
    coordinator = parts.groups.coordinator
    commit = CommitOffsets("g", {partition_state().topic_partition: OffsetToCommit(5)})
    parts.groups.call(coordinator.commit_offsets, commit, lambda result: result)
    samples = scrape(CoordinatorMetrics(parts.groups, parts.transactions))
    prefix = "coordinator_group_groupmetadatamanager_"
    for name in ("preparingrebalance", "completingrebalance", "stable", "dead", "empty"):
        assert samples[f"{prefix}numgroups{name}"] == (name == "empty")
    assert (samples[f"{prefix}numgroups"], samples[f"{prefix}numoffsets"]) == (1, 1)


def test_consumer_groups(parts: Parts) -> None:
    parts.coordinate()
    parts.waiter.mark_complete()
    join = ConsumerHeartbeat("g", "m", 0, None, None, 1, ["t"], owned={})
    coordinator = parts.groups.coordinator
    parts.groups.call(coordinator.consumer_heartbeat, join, lambda result: result)
    samples = scrape(CoordinatorMetrics(parts.groups, parts.transactions))
    counts = {
        state: samples[f"server_groupcoordinatormetrics_consumer_group_count state={state}"]
        for state in ("empty", "assigning", "reconciling", "stable", "dead")
    }
    assert counts == {"empty": 0, "assigning": 0, "reconciling": 0, "stable": 1, "dead": 0}
    assert samples["coordinator_group_groupmetadatamanager_numgroups"] == 0


def begin_and_commit(parts: Parts, partition: TopicPartition) -> None:
    coordinator = parts.transactions.coordinator
    results: list[InitProducerIdResult] = []
    service = parts.transactions
    service.run_internal(coordinator.init_producer_id, InitProducerId("x", 60_000), results.append)
    producer = Producer(results[0].producer_id, results[0].producer_epoch)
    ignored: list[object] = []
    service.run_internal(
        coordinator.add_partitions, AddPartitions("x", producer, [partition]), ignored.append
    )
    service.run_internal(
        coordinator.end_transaction, EndTransaction("x", producer, True), ignored.append
    )


def test_transactions(parts: Parts) -> None:
    parts.lead_transactions()
    parts.announce("t", leader=-1)
    begin_and_commit(parts, TopicPartition("t", 0))
    samples = scrape(CoordinatorMetrics(parts.groups, parts.transactions))
    states = {name: n for name, n in samples.items() if name.startswith(IDS) and n}
    assert states == {f"{IDS} state=PrepareCommit": 1}
    assert f"{IDS} state=CompleteAbort" in samples
    assert samples[f"{MARKERS}_unknowndestinationqueuesize"] == 0
    parts.timers.fire()
    samples = scrape(CoordinatorMetrics(parts.groups, parts.transactions))
    assert samples[f"{MARKERS}_unknowndestinationqueuesize"] == 1
    assert samples[f"{MARKERS}_logappendretryqueuesize"] == 0


def test_a_completion_that_the_log_does_not_take(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts.lead_transactions()
    parts.announce("t")
    parts.lead("t")
    begin_and_commit(parts, TopicPartition("t", 0))
    log = parts.transactions._log
    monkeypatch.setattr(
        log, "append", lambda a, answered: answered(ErrorCode.NOT_ENOUGH_REPLICAS, -1)
    )
    parts.timers.fire()
    samples = scrape(CoordinatorMetrics(parts.groups, parts.transactions))
    assert samples[f"{MARKERS}_logappendretryqueuesize"] == 1


def test_times_of_loading(parts: Parts) -> None:
    prefix = "server_groupcoordinatormetrics_partition_load_time"
    assert math.isnan(scrape(CoordinatorMetrics(parts.groups, parts.transactions))[f"{prefix}_max"])
    for seconds in (1.0, 3.0):
        parts.groups.load_times.add(seconds)
    parts.transactions.load_times.add(0.5)
    samples = scrape(CoordinatorMetrics(parts.groups, parts.transactions))
    assert (samples[f"{prefix}_max"], samples[f"{prefix}_avg"]) == (3000, 2000)
    assert samples["server_transactioncoordinatormetrics_partition_load_time_max"] == 500
