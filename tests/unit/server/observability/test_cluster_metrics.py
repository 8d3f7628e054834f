"""The cluster's numbers: of the controller, of replication, of the ZooKeeper session."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.server.observability.cluster_metrics import controller_gauges
from tests.harness.cores.controllers import Cluster
from tests.harness.cores.server_parts import Parts
from tests.harness.processes.scraped import scrape
from tests.harness.storage.partitions import partition_state


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    return Parts(tmp_path)


def test_what_the_acting_controller_knows() -> None:
    cluster = Cluster(1, 2, 3)
    cluster.create_topic("t", {0: (2, 3), 1: (3, 2), 2: (2,)}, 1)
    cluster.create_topic("u", {0: (1,)}, 2)
    cluster.kill(2)
    assert controller_gauges(cluster.controller) == {
        "activecontrollercount": 1,
        "activebrokercount": 2,
        "globaltopiccount": 2,
        "globalpartitioncount": 4,
        "offlinepartitionscount": 1,
        "preferredreplicaimbalancecount": 2,
        "topicstodeletecount": 0,
        "topicsineligibletodeletecount": 0,
    }


def test_another_broker_says_nothing_of_the_cluster() -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic("t", {0: (2, 1)})
    assert set(controller_gauges(cluster.brokers[2].controller).values()) == {0}
    assert set(controller_gauges(None).values()) == {0}


def test_the_controllers_events_and_elections(parts: Parts) -> None:
    cluster = Cluster(1, 2)
    cluster.create_topic("t", {0: (2, 1)})
    cluster.controller.context.unclean_elections = 3
    parts.controller.controller = cluster.controller
    parts.controller.queue_size = 4
    parts.controller.event_times.observe("LeaderElection", 0.5)
    samples = scrape(parts.cluster_metrics())
    assert samples["controller_kafkacontroller_activecontrollercount"] == 1
    assert samples["controller_kafkacontroller_globalpartitioncount"] == 1
    assert samples["controller_controllereventmanager_eventqueuesize"] == 4
    prefix = "controller_controllerstats_"
    assert samples[f"{prefix}uncleanleaderelections_total"] == 3
    assert samples[f"{prefix}leaderelectionrateandtimems_count"] == 1
    assert samples[f"{prefix}leaderelectionrateandtimems quantile=0.99"] == 500


def test_replication(parts: Parts) -> None:
    parts.lead(index=0, isr=(1, 2), replicas=(1, 2))
    parts.lead(index=1, isr=(1,), replicas=(1, 2))
    moving = parts.lead(index=2, isr=(1, 2), replicas=(1, 2, 3))
    moving.adding_replicas = (3,)
    parts.apply_leader_and_isr(partition_state(2, (2, 1), partition=3))
    parts.replicas.isr_counts.record_change(3, 2)
    parts.replicas.isr_counts.failed_updates += 1
    parts.max_lag = 17
    samples = scrape(parts.cluster_metrics())
    prefix = "server_replicamanager_"
    assert samples[f"{prefix}isrshrinks_total"] == 1
    assert samples[f"{prefix}isrexpands_total"] == 0
    assert samples[f"{prefix}failedisrupdates_total"] == 1
    assert samples[f"{prefix}atminisrpartitioncount"] == 1
    assert samples[f"{prefix}reassigningpartitions"] == 1
    assert samples["server_replicafetchermanager_maxlag clientid=Replica"] == 17


def test_the_zookeeper_session(parts: Parts) -> None:
    assert not [name for name in scrape(parts.cluster_metrics()) if "zookeeper" in name]
    metrics = parts.metrics.zookeeper
    metrics.set_state("CONNECTED")
    metrics.latency.add(0.002)
    samples = scrape(parts.cluster_metrics())
    prefix = "server_sessionexpirelistener_"
    assert samples[f"{prefix}sessionstate state=CONNECTED"] == 1
    assert samples[f"{prefix}sessionstate state=EXPIRED"] == 0
    assert samples[f"{prefix}zookeepersyncconnects_total"] == 1
    assert samples[f"{prefix}zookeeperexpires_total"] == 0
    assert samples["server_zookeeperclientmetrics_zookeeperrequestlatencyms_count"] == 1
    assert samples["server_zookeeperclientmetrics_zookeeperrequestlatencyms_sum"] == 2
