"""Consumer groups (kafkatest `client/consumer_test`, classic protocol): brokers and members stop
and start, and every record is consumed once.

The group of the workload runs at the same time. The anomaly table checks it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.harness.faults.chaos_run import PARTITIONS, TOPIC, Workload
from tests.harness.faults.fault_cluster import FaultCluster, wait_until
from tests.harness.faults.group_members import FENCED, SETTLE_LIMIT_S, Group
from tests.harness.faults.scenario import Scenario, leader

MEMBERS = (1, 2, 3)
STRATEGIES = ("range", "roundrobin", "cooperative-sticky")


def of_group(name: str, events: Callable[[FaultCluster, Group], str], **options: Any) -> Scenario:
    """A group of three that has settled and consumes; `events` run, and then it is checked."""

    def faults(cluster: FaultCluster, _: Workload) -> Iterator[str]:
        group = Group(cluster, TOPIC, PARTITIONS, name, **options)
        try:
            group.start(*MEMBERS)
            group.settle()
            group.wait_for_consumption()
            done = events(cluster, group)
        finally:
            group.stop_all()
        group.check()
        yield f"group {name}: {done}"

    return Scenario(faults)


def bounce_brokers(cluster: FaultCluster, group: Group) -> None:
    """Restart each broker in turn, cleanly; the group continues and does not rebalance."""
    before = group.revocations
    for broker in cluster.brokers.values():
        broker.stop()
        cluster.start_supervised(broker)
        cluster.wait_for_full_isr()
        group.settle()
        group.wait_for_consumption()
    assert group.revocations == before


def broker_rolling_bounce(bounces: int) -> Scenario:
    """A rolling restart of the brokers causes no rebalance."""

    def events(cluster: FaultCluster, group: Group) -> str:
        for _ in range(bounces):
            bounce_brokers(cluster, group)
        return f"{bounces} rolling bounces of the brokers, no rebalance"

    return of_group("rolling", events)


def broker_failure(*, clean: bool, commits: bool) -> Scenario:
    """A broker that ends causes no rebalance, even if it coordinates the group."""

    def events(cluster: FaultCluster, group: Group) -> str:
        before = group.revocations
        at = leader(cluster)
        broker = cluster.brokers[at]
        if clean:
            broker.stop()
        else:
            broker.kill()
        group.wait_for_consumption(1000)
        assert group.revocations == before
        cluster.start_supervised(broker)
        cluster.wait_for_full_isr()
        return f"broker {at} {'stopped' if clean else 'killed'}, no rebalance"

    name = f"broker-{'stopped' if clean else 'killed'}-{'commits' if commits else 'auto'}"
    return of_group(name, events, commits=commits)


def member_bounce(bounces: int, *, rolling: bool, static: bool) -> Scenario:
    """Members restart. Dynamic members make the group rebalance; static ones get their partitions
    back, and the member that stayed loses none."""

    def events(_: FaultCluster, group: Group) -> str:
        stayer, *leavers = MEMBERS
        before = group.members[stayer].revocations
        for _bounce in range(bounces):
            for numbers in [[number] for number in leavers] if rolling else [leavers]:
                group.stop(*numbers)
                group.start(*numbers)
                group.settle()
                group.wait_for_consumption()
        stayed = group.members[stayer].revocations - before
        assert (stayed == 0) == static, f"{stayed} revocations of the member that stayed"
        return f"{bounces} bounces"

    kind = f"{'static' if static else 'dynamic'}-{'rolling' if rolling else 'at-once'}"
    return of_group(f"member-bounce-{kind}", events, static=static)


def static_members_persist() -> Scenario:
    """The member ids of restarted static members survive a change of the coordinator."""

    def events(cluster: FaultCluster, group: Group) -> str:
        group.stop(*MEMBERS)
        group.start(*MEMBERS)
        group.settle()
        group.wait_for_consumption()
        bounce_brokers(cluster, group)
        fenced = [member.name for member in group.members.values() if member.fatal]
        assert fenced == []
        return "all members and then all brokers bounced, nobody fenced"

    return of_group("static-persist", events, static=True)


def fencing(conflicts: int) -> Scenario:
    """A second member of the same group.instance.id replaces the first, which ends."""

    def events(_: FaultCluster, group: Group) -> str:
        fenced = {number: group.members[number] for number in MEMBERS[:conflicts]}
        for number in fenced:
            group.members[number] = group.start_instance(number)

        def lacking() -> list[str]:
            return [f"{m.name}: {m.fatal}" for m in fenced.values() if m.fatal != FENCED]

        wait_until(lacking, SETTLE_LIMIT_S, "not fenced")
        group.settle()
        group.wait_for_consumption()
        return f"{conflicts} of {len(MEMBERS)} members fenced"

    # A fenced member may not commit the last records that it has read, so another reads them
    # again. With a commit for each record, these do not count as consumed.
    return of_group(f"fencing-{conflicts}", events, static=True, commits=True)


def member_failure(*, commits: bool) -> Scenario:
    """The owner of a partition leaves; the others consume the partition."""

    def events(_: FaultCluster, group: Group) -> str:
        owner = next(n for n, member in group.members.items() if 0 in member.assigned)
        group.stop(owner)
        group.settle()
        group.wait_for_consumption(1000)
        return f"member {owner} left"

    return of_group(f"member-left-{'commits' if commits else 'auto'}", events, commits=commits)


def members_join_and_leave(strategy: str) -> Scenario:
    """Members join one by one, and leave one by one: each partition has one owner after each."""

    def events(_: FaultCluster, group: Group) -> str:
        group.stop(*MEMBERS)
        for number in MEMBERS:
            group.start(number)
            group.settle()
            group.wait_for_consumption()
        for number in MEMBERS[:-1]:
            group.stop(number)
            group.settle()
            group.wait_for_consumption()
        return f"came and went by {strategy}"

    return of_group(f"assignment-{strategy}", events, partition_assignment_strategy=strategy)
