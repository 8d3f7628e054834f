"""Faults that follow a course of events: each waits for a moment at which it does the most harm.

`COURSES` names them. They end with the other faults.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafkapy.common.topic_partition import TRANSACTION_STATE_TOPIC, TopicPartition
from kafkapy.coordinator.transactions.log_records import read_transaction
from kafkapy.coordinator.transactions.state import PREPARED
from kafkapy.record.records import iter_records
from kafkapy.replication.partition import Partition
from kafkapy.zk.stores import paths
from tests.simulation.cluster import TABLE
from tests.simulation.ensemble import HOST as ZOOKEEPER
from tests.simulation.events import MS_US, SECOND_US
from tests.simulation.fault_tools import FaultTools
from tests.simulation.node import Node

_LOOK_EVERY_US: Final = 3 * MS_US
_READ_BYTES: Final = 1 << 20


def _when(
    faults: FaultTools,
    is_so: Callable[[], bool],
    then: Callable[[], None],
    limit_us: int = SECOND_US,
) -> None:
    """Do `then` as soon as it is so, unless all faults are over by then."""
    events = faults.world.events
    end_us = events.now_us + limit_us

    def look() -> None:
        if faults._is_over or events.now_us > end_us:
            return
        if is_so():
            then()
        else:
            events.after(_LOOK_EVERY_US, look)

    look()


def _slow(faults: FaultTools, source: str, target: str, delay_us: int, for_us: int) -> None:
    """A link is slow for a while."""
    slow_us, link = faults.world.network.slow_us, (source, target)
    slow_us[link] = delay_us
    faults.world.events.after(for_us, lambda: slow_us.pop(link, None))


def _state(faults: FaultTools, at: TopicPartition) -> tuple[int, list[int], int]:
    """Leader, ISR and leader epoch in ZooKeeper."""
    state = faults.cluster.znode(paths.partition_state(*at))
    if state is None:
        return -1, [], -1
    leader, isr, epoch = state["leader"], state["isr"], state["leader_epoch"]
    assert isinstance(leader, int)
    assert isinstance(isr, list)
    assert isinstance(epoch, int)
    return leader, isr, epoch


def _hosted(node: Node, at: TopicPartition) -> Partition | None:
    return next((p for p in node.partitions() if p.topic_partition == at), None)


def _expire(faults: FaultTools, broker_id: int) -> None:
    registration = faults.world.ensemble.tree.nodes.get(paths.broker(broker_id))
    if registration is not None:
        faults.world.ensemble.expire(registration.stat.ephemeral_owner)


def stranded_move(faults: FaultTools) -> bool:
    """A move cannot end, for one of its targets is down; the first replica that arrived is the last
    one in sync when the move is cancelled."""
    at = faults._partition()
    nodes, random = faults.world.nodes, faults.world.random
    assigned = faults.cluster.assignment(at) or ()
    leader, _, _ = _state(faults, at)
    new = [b for b, node in nodes.items() if b not in assigned and node.is_serving]
    staying = [b for b in assigned if b != leader and nodes[b].is_serving]
    if not new or not staying or leader < 0 or faults.admin.is_busy:
        return False
    arrives, down = random.choice(new), random.choice(staying)
    nodes[down].kill()
    target = [arrives, *(b for b in assigned if b != leader)]

    def others_die() -> None:
        for broker_id in assigned:
            nodes[broker_id].kill()
        _when(faults, alone, cancel, 6 * SECOND_US)

    def alone() -> bool:
        return _state(faults, at)[:2] == (arrives, [arrives]) and not faults.admin.is_busy

    def cancel() -> None:
        faults._ask(lambda: faults.admin.reassign(at, None), f"the move of {at} is cancelled")
        faults.world.counts["stranded move"] += 1
        for broker_id in assigned:
            faults._for(500, 2000, nodes[broker_id].start)

    _when(faults, lambda: arrives in _state(faults, at)[1], others_die, 3 * SECOND_US)
    for broker_id in assigned:  # whatever comes of it
        faults._for(9000, 9500, nodes[broker_id].start)
    faults._ask(
        lambda: faults.admin.reassign(at, target), f"{at} moves to {target}; {down} is down"
    )
    return False  # counted when it happens


def joiner_expires(faults: FaultTools) -> bool:
    """A replica's session expires just before it has caught up, and its leader hears of it late."""
    joins: list[tuple[int, int]] = []

    def is_so() -> bool:
        for at in faults.cluster.partitions():
            leader, isr, epoch = _state(faults, at)
            for broker_id in faults.cluster.assignment(at) or ():
                partition = _hosted(faults.world.nodes[broker_id], at)
                is_behind = partition is not None and partition.leader_epoch == epoch
                if leader >= 0 and broker_id not in isr and is_behind:
                    joins.append((leader, broker_id))
        return bool(joins)

    def expire() -> None:
        (leader, broker_id), controller = joins[0], faults._controller()
        if controller is None:
            return
        _slow(faults, controller.host, f"b{leader}", 300 * MS_US, SECOND_US)
        faults._note(f"the session of b{broker_id} expires, which joins an ISR of b{leader}")
        faults.world.counts["joiner expires"] += 1
        _expire(faults, broker_id)

    _when(faults, is_so, expire, 3 * SECOND_US)
    return False  # counted when it happens


def deposed_at_work(faults: FaultTools) -> bool:
    """The controller is deposed between two writes of partition states. ZooKeeper is slow, to that
    broker above all: the next controller is in office when the second write comes, and has not got
    so far itself."""
    controller, victim = faults._controller(), faults._some()
    if controller is None or victim is None or victim is controller:
        return False
    tree = faults.world.ensemble.tree
    zxid = tree.zxid

    def is_so() -> bool:
        states = (tree.nodes.get(paths.partition_state(*at)) for at in faults.cluster.partitions())
        return any(state is not None and state.stat.mzxid > zxid for state in states)

    def depose() -> None:
        if faults._controller() is controller and not faults.world.ensemble.is_down:
            faults._note(f"{controller.host} is deposed at work")
            faults.world.counts["deposed at work"] += 1
            faults.world.ensemble.remove(paths.CONTROLLER)

    for node in faults.world.nodes.values():
        delay_ms = 750 if node is controller else 230
        _slow(faults, ZOOKEEPER, node.host, delay_ms * MS_US, 6 * SECOND_US)
    _expire(faults, victim.broker_id)
    _when(faults, is_so, depose, 4 * SECOND_US)
    faults._note(f"ZooKeeper is slow, and the session of {victim.host} expires")
    return False  # counted when it happens


def all_die_at_a_decision(faults: FaultTools) -> bool:
    """All brokers are killed when the coordinator has just written a decision, which its followers
    may not have yet."""
    at = TopicPartition(TRANSACTION_STATE_TOPIC, 0)

    def is_so() -> bool:
        leader = faults.world.nodes.get(_state(faults, at)[0])
        partition = None if leader is None else _hosted(leader, at)
        if partition is None or not partition.is_leader:
            return False
        log = partition.log
        if log.log_end_offset == log.high_watermark:
            return False
        found = log.read(log.high_watermark, _READ_BYTES, log.log_end_offset, True).records
        values = [record.value for record in iter_records(found)]
        return any(v is not None and read_transaction("", v).state in PREPARED for v in values)

    def kill() -> None:
        for node in faults.world.nodes.values():
            node.kill()
            faults._for(100, 1500, node.start)
        faults._note("all brokers are killed at a decision")
        faults.world.counts["all die at a decision"] += 1

    if faults.cluster.plan.transactional_ids:
        _when(faults, is_so, kill, 2 * SECOND_US)
    return False  # counted when it happens


def late_proposal(faults: FaultTools) -> bool:
    """A leader's proposal that its ISR shrinks takes so long that it is sent again, over another
    connection. When the first one arrives, the follower is in the ISR again."""
    at, controller, network = faults._partition(), faults._controller(), faults.world.network
    leader, isr, _ = _state(faults, at)
    if controller is None or leader < 0 or leader == controller.broker_id:
        return False
    node = faults.world.nodes[leader]
    others = [b for b in isr if b not in (leader, controller.broker_id)]
    if not others:
        return False
    follower = f"b{others[0]}"
    pairs = [(node.host, follower), (follower, node.host)]

    def is_proposed() -> bool:
        partition = _hosted(node, at)
        return partition is not None and partition.in_sync.pending is not None

    def heal() -> None:
        network.slow_us.pop((node.host, controller.host), None)
        for pair in pairs:
            network.heal_link(*pair)

    def go_on() -> None:
        heal()
        faults.world.counts["late proposal"] += 1

    for pair in pairs:
        network.cut_link(*pair)
    network.slow_us[node.host, controller.host] = 2600 * MS_US
    _when(faults, is_proposed, go_on, 3 * SECOND_US)
    faults.world.events.after(3 * SECOND_US, heal)
    faults._note(f"{follower} is cut off from {node.host}, whose next proposal will be late")
    return False  # counted when it happens


def placed_on_the_dead(faults: FaultTools) -> bool:
    """A topic is created on a broker that the controller knows to be dead."""
    victim, other = faults._some(), faults._controller()
    if victim is None or other is None or victim is other:
        return False
    victim.kill()
    faults._for(3000, 4000, victim.start)
    ids = [other.broker_id, victim.broker_id]
    registration = paths.broker(victim.broker_id)

    def create() -> None:
        if faults._ask(lambda: faults.admin.create_on(ids), f"a topic is made on {ids}"):
            faults.world.counts["placed on the dead"] += 1

    def is_gone() -> bool:
        return registration not in faults.world.ensemble.tree.nodes and not faults.admin.is_busy

    _when(faults, is_gone, lambda: faults._for(50, 200, create), 3 * SECOND_US)
    faults._note(f"kill -9 {victim.host}, until a topic is made on it")
    return False  # counted when it happens


def leaves_while_cleaned(faults: FaultTools) -> bool:
    """The compacted topic moves away from a broker whose threads are slow, while one of them cleans
    its log."""
    at, nodes = TopicPartition(TABLE, 0), faults.world.nodes
    assigned = faults.cluster.assignment(at) or ()
    hosts = [b for b in assigned if nodes[b].is_serving]
    if not hosts or not faults.cluster.plan.compacts:
        return False
    node = nodes[faults.world.random.choice(hosts)]
    others = [b for b in assigned if b != node.broker_id]
    target = others + [b for b in nodes if b not in assigned][:1]
    process = node.process
    if process is None or len(target) < 2:
        return False
    usual_us, process.thread_us = process.thread_us, 2 * SECOND_US

    def is_cleaned() -> bool:
        partition = _hosted(node, at)
        return partition is not None and partition.log.cleaning.in_progress

    def move() -> None:
        if faults._ask(lambda: faults.admin.reassign(at, target), f"{at} moves to {target}"):
            faults.world.counts["leaves while cleaned"] += 1

    def recover() -> None:
        process.thread_us = usual_us

    _when(faults, lambda: is_cleaned() and not faults.admin.is_busy, move, 3 * SECOND_US)
    faults.world.events.after(4 * SECOND_US, recover)
    return False  # counted when it happens


COURSES: Final[dict[str, Callable[[FaultTools], bool]]] = {
    "stranded move": stranded_move,
    "joiner expires": joiner_expires,
    "deposed at work": deposed_at_work,
    "all die at a decision": all_die_at_a_decision,
    "late proposal": late_proposal,
    "placed on the dead": placed_on_the_dead,
    "leaves while cleaned": leaves_while_cleaned,
}
