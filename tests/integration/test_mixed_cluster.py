"""Brokers of ours and of Apache Kafka 3.9 in one cluster: each follows, leads and controls the
other, and what was acknowledged survives it. `scripts/chaos --apache ID...` goes on from here.

Without Apache Kafka's jars nothing is checked, and the end of the run says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from kafkapy.admin.configs import Resource, incremental_alter_configs
from kafkapy.client.cluster import Cluster
from kafkapy.common.config_def import ResourceType
from kafkapy.common.errors import ErrorCode
from kafkapy.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.harness.faults.chaos_run import PARTITIONS, TOPIC, Workload
from tests.harness.faults.fault_cluster import FaultCluster, Kind, kafkapy_broker
from tests.harness.faults.scenario import Scenario
from tests.harness.processes import apache_kafka
from tests.harness.processes.waiting import wait_until

APACHE = 2
LIMIT_S = 30.0
RATE = 200.0
OTHER = "made-and-deleted"
BLOCK = 1000


def make_controller(cluster: FaultCluster, broker_id: int) -> None:
    """The others sleep while the office is vacant, for less than their sessions last."""
    with ExitStack() as awake:
        for other, broker in cluster.brokers.items():
            if other != broker_id:
                broker.pause()
                awake.callback(broker.resume)
        with cluster.client() as client:
            client.delete("/controller")
        wait_until(lambda: cluster.controller_id() == broker_id, f"controller {broker_id}", LIMIT_S)
    for broker in cluster.brokers.values():
        with Cluster(broker.bootstrap_servers) as client:

            def knows(client: Cluster = client) -> bool:
                return client.metadata([], refresh=True).controller_id == broker_id

            wait_until(knows, f"{broker.name} knows of controller {broker_id}", LIMIT_S)


def administer(cluster: FaultCluster) -> None:
    """Create a topic, add partitions and delete it, through the controller."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})

    def partitions() -> int:
        found = admin.list_topics(timeout=LIMIT_S).topics.get(OTHER)
        return 0 if found is None else len(found.partitions)

    def has(wanted: int) -> None:
        wait_until(lambda: partitions() == wanted, f"{OTHER} has {wanted} partitions", LIMIT_S)

    admin.create_topics([NewTopic(OTHER, 2, 3)])[OTHER].result(LIMIT_S)
    has(2)
    admin.create_partitions([NewPartitions(OTHER, 4)])[OTHER].result(LIMIT_S)
    has(4)
    cluster.wait_for_full_isr()
    admin.delete_topics([OTHER])[OTHER].result(LIMIT_S)
    has(0)


def take_producer_ids(cluster: FaultCluster) -> None:
    """More than a block, which Apache Kafka's brokers ask the controller for (KIP-730)."""
    taken: list[int] = []
    with Cluster(cluster.brokers[APACHE].bootstrap_servers) as client:

        def are_taken() -> bool:
            while len(taken) <= BLOCK:
                request = InitProducerIdRequest(transaction_timeout_ms=1000)
                answer = client.request(request, broker_id=APACHE)
                if answer.error_code != ErrorCode.NONE:
                    return False  # the next block is under way
                taken.append(answer.producer_id)
            return True

        wait_until(are_taken, f"{BLOCK + 1} producer ids of broker {APACHE}", LIMIT_S)
    assert len(set(taken)) == len(taken)


def move(cluster: FaultCluster) -> None:
    """A partition leaves each broker and comes back, its leader another one in between."""
    for target in ({0: [3, 1]}, {0: [APACHE, 3]}, {0: [1, APACHE, 3]}):
        cluster.reassign(TOPIC, target)
        wait_until(
            lambda target=target: not cluster.not_reassigned(TOPIC, target),  # type: ignore[misc]
            f"reassigned to {target}",
            LIMIT_S,
        )
    cluster.elect_preferred(TOPIC, PARTITIONS)


def configure_what_apache_lacks(cluster: FaultCluster) -> None:
    """Configs of client metrics and groups; Apache Kafka's broker passes over their notifications,
    without an error, and applies what comes after them.
    """
    apache = cluster.brokers[APACHE]
    with Cluster(cluster.brokers[1].bootstrap_servers) as client:
        for kind, name, configs in (
            (ResourceType.CLIENT_METRICS, "m", {"metrics": "*"}),
            (ResourceType.GROUP, "g", {"consumer.session.timeout.ms": "50000"}),
            (ResourceType.TOPIC, TOPIC, {"retention.ms": "87654321"}),
        ):
            incremental_alter_configs(client, Resource(kind, name), configs, [])
    wait_until(lambda: "87654321" in apache.output.read_text(), "a topic's config", LIMIT_S)
    assert "processing change notification" not in apache.output.read_text()


if apache_kafka.installed():

    def test_each_kind_follows_leads_and_controls_the_other(tmp_path: Path) -> None:
        def faults(cluster: FaultCluster, workload: Workload) -> Iterator[str]:
            for controller, other in ((1, APACHE), (APACHE, 1)):
                make_controller(cluster, controller)
                administer(cluster)
                take_producer_ids(cluster)
                configure_what_apache_lacks(cluster)
                move(cluster)
                cluster.brokers[other].stop()  # moves its leaders away first
                workload.wait_for_progress(100)
                cluster.start_supervised(cluster.brokers[other])
                cluster.wait_for_full_isr()
                cluster.elect_preferred(TOPIC, PARTITIONS)
                cluster.brokers[other].kill()
                workload.wait_for_progress(100)
                cluster.start_supervised(cluster.brokers[other])
                cluster.wait_for_full_isr()
                yield f"broker {controller} was the controller, {other} stopped and was killed"
            kinds: dict[int, Kind] = {APACHE: kafkapy_broker, 1: apache_kafka.ApacheBroker}
            for broker_id, kind in kinds.items():
                cluster.replace_broker(broker_id, kind, clean=False)
                cluster.elect_preferred(TOPIC, PARTITIONS)
                workload.wait_for_progress(100)
                yield f"broker {broker_id} went on as one of the other kind"

        verdict = Scenario(faults, rate=RATE, apache=(APACHE,)).run(tmp_path)
        assert verdict.clean, verdict.text()
        assert len(verdict.faults) == 4
