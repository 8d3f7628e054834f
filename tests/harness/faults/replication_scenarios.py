"""Brokers that stop, fall silent or are cut off while records flow."""

from __future__ import annotations

from collections.abc import Iterator

from tests.harness.faults.chaos_run import PARTITIONS, TOPIC, Workload
from tests.harness.faults.fault_cluster import SESSION_TIMEOUT_S, FaultCluster, wait_until
from tests.harness.faults.faults import while_paused
from tests.harness.faults.links import Trouble
from tests.harness.faults.scenario import AIMS, Scenario, controller, leader

EXPAND_LIMIT_S = 120.0
SILENCE_LIMIT_S = 10 * SESSION_TIMEOUT_S


def replication(aim: str, clean: bool, bounces: int) -> Scenario:
    """replication_test: the aimed broker is shut down, and bounced, cleanly or hard.

    While it is down the others must go on: records are acknowledged.
    """

    def faults(cluster: FaultCluster, workload: Workload) -> Iterator[str]:
        for number in range(bounces):
            broker_id = AIMS[aim](cluster)
            broker = cluster.brokers[broker_id]
            if clean:
                broker.stop()
            else:
                broker.kill()
            if number == 0:
                workload.wait_for_progress(200)
            cluster.start_supervised(broker)
            cluster.wait_for_full_isr()
            yield f"{'clean' if clean else 'hard'} bounce of {aim} {broker_id}"

    return Scenario(faults)


def replica_failure(records: int) -> Scenario:
    """replication_replica_failure: one follower is cut off from its leader; the ISR shrinks without
    it and records flow; healed, it expands again."""

    def faults(cluster: FaultCluster, workload: Workload) -> Iterator[str]:
        at = leader(cluster)
        follower = next(i for i in cluster.brokers if i != at)
        link, pid = cluster.internal[at], cluster.brokers[follower].pid

        def members() -> list[int]:
            isr: list[int] = cluster.state(TOPIC, 0).get("isr", [])
            return isr

        cluster.network.set(link, Trouble.CUT, pid)
        wait_until(
            lambda: ["still in"] if follower in members() else [], EXPAND_LIMIT_S, "no shrinking"
        )
        workload.wait_for_progress(records, EXPAND_LIMIT_S + records / 100)
        cluster.network.heal(link, broken=True)
        wait_until(
            lambda: [] if follower in members() else ["not in"], EXPAND_LIMIT_S, "no expansion"
        )
        yield f"broker {follower} cut off from leader {at}"

    return Scenario(faults)


def silence() -> Scenario:
    """The ZooKeeper session of a leader times out while the broker is paused.

    Its registration is removed, and it leads nothing. After it resumes, it has a new registration
    and is in every ISR.
    """

    def faults(cluster: FaultCluster, workload: Workload) -> Iterator[str]:
        at = leader(cluster)

        def moved() -> list[str]:
            registered = [f"{at} is registered"] if at in cluster.registered() else []
            leading = [p for p in range(PARTITIONS) if cluster.leader(TOPIC, p) == at]
            return registered + [f"{at} leads {leading}"] * bool(leading)

        def during() -> None:
            wait_until(moved, SILENCE_LIMIT_S, "no deregistration")
            workload.wait_for_progress(200)

        before = cluster.broker_epoch(at)
        while_paused(cluster.brokers[at], during)
        cluster.wait_for_full_isr()
        assert cluster.broker_epoch(at) > before
        yield f"broker {at} silent"

    return Scenario(faults)


def controller_silence() -> Scenario:
    """The session of the controller times out, and another controller is elected.

    When the old controller resumes, its changes are refused, and it is an ordinary broker.
    """

    def faults(cluster: FaultCluster, workload: Workload) -> Iterator[str]:
        at, epoch = controller(cluster), cluster.controller_epoch()

        def during() -> None:
            wait_until(
                lambda: ["no other"] if cluster.controller_id() in (at, None) else [],
                SILENCE_LIMIT_S,
                "no other controller",
            )
            workload.wait_for_progress(200)

        while_paused(cluster.brokers[at], during)
        cluster.wait_for_full_isr()
        assert controller(cluster) != at
        assert cluster.controller_epoch() == epoch + 1
        yield f"controller {at} silent"

    return Scenario(faults)


def expiry() -> Scenario:
    """ZooKeeper expires the session of a running broker, which registers again by itself."""

    def faults(cluster: FaultCluster, workload: Workload) -> Iterator[str]:
        for aim, aimed in AIMS.items():
            broker_id = aimed(cluster)
            before = cluster.broker_epoch(broker_id)
            cluster.expire(broker_id)
            wait_until(
                lambda before=before, broker_id=broker_id: (  # type: ignore[misc]
                    [] if cluster.broker_epoch(broker_id) > before else ["not registered anew"]
                ),
                SILENCE_LIMIT_S,
                "no registration",
            )
            cluster.wait_for_full_isr()
            yield f"the session of {aim} {broker_id} expired"

    return Scenario(faults)
