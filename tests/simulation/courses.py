"""Faults with several steps, each triggered at the moment of the greatest harm."""

from __future__ import annotations

from itertools import pairwise, permutations
from typing import Final

from kafkapy.common.topic_partition import TRANSACTION_STATE_TOPIC, TopicPartition
from kafkapy.coordinator.transactions.log_records import read_transaction
from kafkapy.coordinator.transactions.state import PREPARED
from kafkapy.record.batch_header import iter_headers
from kafkapy.record.records import iter_records
from kafkapy.replication.partition import Partition
from kafkapy.storage import log_names
from kafkapy.storage.log_segment import LogSegment
from kafkapy.storage.unified_log import UnifiedLog
from kafkapy.zk.stores import paths
from tests.simulation.cluster import TABLE, TOPIC, TRIMMED
from tests.simulation.ensemble import HOST as ZOOKEEPER
from tests.simulation.events import MS_US, SECOND_US
from tests.simulation.fault_tools import FaultTools, files_of, hosted
from tests.simulation.flips import place_in_header
from tests.simulation.node import Node

_READ_BYTES: Final = 1 << 20
_SMALL_SEGMENT_BYTES: Final = 300
_UNFLUSHED_SEGMENTS: Final = 2


class SequencedFaults(FaultTools):
    """Faults of several steps, one method each; `faults` has the others."""

    def stranded_move(self) -> bool:
        """Cancel a move that cannot end because one target is down; the first replica that arrived
        is by then the last one in sync."""
        at = self._partition()
        nodes, random = self.world.nodes, self.world.random
        assigned = self.cluster.assignment(at) or ()
        leader, _, _ = self._state(at)
        new = [b for b, node in nodes.items() if b not in assigned and node.is_serving]
        staying = [b for b in assigned if b != leader and nodes[b].is_serving]
        if not new or not staying or leader < 0 or self.admin.is_busy:
            return False
        arrives, down = random.choice(new), random.choice(staying)
        nodes[down].kill()
        target = [arrives, *(b for b in assigned if b != leader)]

        def others_die() -> None:
            for broker_id in assigned:
                nodes[broker_id].kill()
            self._when(alone, cancel, 6 * SECOND_US)

        def alone() -> bool:
            return self._state(at)[:2] == (arrives, [arrives]) and not self.admin.is_busy

        def cancel() -> None:
            self._request_change(
                lambda: self.admin.reassign(at, None), f"the move of {at} is cancelled"
            )
            self.world.counts["stranded move"] += 1
            for broker_id in assigned:
                self._after_random_delay(500, 2000, nodes[broker_id].start)

        self._when(lambda: arrives in self._state(at)[1], others_die, 3 * SECOND_US)
        for broker_id in assigned:  # whatever the outcome
            self._after_random_delay(9000, 9500, nodes[broker_id].start)
        self._request_change(
            lambda: self.admin.reassign(at, target), f"{at} moves to {target}; {down} is down"
        )
        return False  # counted when it happens

    def copied_tail(self) -> bool:
        """Depose a leader that copies its log to another directory, with records that its followers
        lack, before the throttled move ends."""
        at = self._partition()
        leader, isr, _ = self._state(at)
        node = self.world.nodes.get(leader)
        partition = None if node is None else hosted(node, at)
        if node is None or partition is None or len(isr) < 2 or node.has_failed_disk:
            return False
        log = partition.log
        other_dirs = [path for path in node.log_dirs if path != log.log_dir]
        others = [self.world.nodes[b].host for b in isr if b != leader]

        def has_tail() -> bool:
            broker = node.built_broker
            copy = None if broker is None else broker.replicas.log_manager.future_logs.logs.get(at)
            return copy is not None and copy.log_end_offset > log.high_watermark

        def depose() -> None:
            self._expire(leader)
            self.world.counts["copied tail"] += 1

        def move() -> None:
            if not self._is_stopped:
                self._when(has_tail, depose, 2 * SECOND_US)
                self._request_change(
                    lambda: self.admin.move(leader, at, other_dirs[0]),
                    f"{at} of {node.host} moves to {other_dirs[0]}",
                )

        if other_dirs:
            self._cut([(other, node.host) for other in others], f"no follower gets to {node.host}")
            self._after_random_delay(100, 500, move)
        return False  # counted when it happens

    def joiner_expires(self) -> bool:
        """Expire a replica's session just before it has caught up, while messages to its leader are
        delayed."""
        joins: list[tuple[int, int]] = []

        def is_joining() -> bool:
            for at in self.cluster.partitions():
                leader, isr, epoch = self._state(at)
                for broker_id in self.cluster.assignment(at) or ():
                    partition = hosted(self.world.nodes[broker_id], at)
                    is_behind = partition is not None and partition.leader_epoch == epoch
                    if leader >= 0 and broker_id not in isr and is_behind:
                        joins.append((leader, broker_id))
            return bool(joins)

        def expire() -> None:
            (leader, broker_id), controller = joins[0], self._controller()
            if controller is None:
                return
            late_ms = self.world.random.choice((300, 1200))
            self._slow(controller.host, f"b{leader}", late_ms * MS_US, SECOND_US)
            self._note(f"the session of b{broker_id} expires, which joins an ISR of b{leader}")
            self.world.counts["joiner expires"] += 1
            self._expire(broker_id)

        self._when(is_joining, expire, 3 * SECOND_US)
        return False  # counted when it happens

    def deposed_at_work(self) -> bool:
        """Depose the controller between two writes of partition states. ZooKeeper is slow, above
        all towards that broker: the next controller is in office when the second write arrives, but
        has not reached that point itself."""
        controller, victim = self._controller(), self._random_node()
        if controller is None or victim is None or victim is controller:
            return False
        tree = self.world.ensemble.tree
        zxid = tree.zxid

        def is_state_written() -> bool:
            states = (
                tree.nodes.get(paths.partition_state(*at)) for at in self.cluster.partitions()
            )
            return any(state is not None and state.stat.mzxid > zxid for state in states)

        def depose() -> None:
            if self._controller() is controller and not self.world.ensemble.is_down:
                self._note(f"{controller.host} is deposed at work")
                self.world.counts["deposed at work"] += 1
                self.world.ensemble.remove(paths.CONTROLLER)

        for node in self.world.nodes.values():
            delay_ms = 750 if node is controller else 230
            self._slow(ZOOKEEPER, node.host, delay_ms * MS_US, 6 * SECOND_US)
        self._expire(victim.broker_id)
        self._when(is_state_written, depose, 4 * SECOND_US)
        self._note(f"ZooKeeper is slow, and the session of {victim.host} expires")
        return False  # counted when it happens

    def all_die_at_a_decision(self) -> bool:
        """Kill all brokers when the coordinator has just written a decision that its followers may
        not have yet."""
        at = TopicPartition(TRANSACTION_STATE_TOPIC, 0)

        def is_decided() -> bool:
            leader = self.world.nodes.get(self._state(at)[0])
            partition = None if leader is None else hosted(leader, at)
            if partition is None or not partition.is_leader:
                return False
            log = partition.log
            if log.log_end_offset == log.high_watermark:
                return False
            found = log.read(log.high_watermark, _READ_BYTES, log.log_end_offset, True).records
            values = [record.value for record in iter_records(found)]
            return any(v is not None and read_transaction("", v).state in PREPARED for v in values)

        def kill() -> None:
            hosts = [node.host for node in self.world.nodes.values()]
            for node in self.world.nodes.values():
                node.kill()
                self._after_random_delay(100, 1500, node.start)
            if self.world.random.random() < 0.5:  # the next coordinator's messages are late
                for pair in permutations(hosts, 2):
                    self._slow(*pair, 200 * MS_US, 4 * SECOND_US)
            self._note("all brokers are killed at a decision")
            self.world.counts["all die at a decision"] += 1

        if self.cluster.plan.transactional_ids:
            self._when(is_decided, kill, 2 * SECOND_US)
        return False  # counted when it happens

    def late_proposal(self) -> bool:
        """Delay a leader's proposal of a smaller ISR until it is sent again over another
        connection. When the first one arrives, the follower is in the ISR again."""
        at, controller, network = self._partition(), self._controller(), self.world.network
        leader, isr, _ = self._state(at)
        if controller is None or leader < 0 or leader == controller.broker_id:
            return False
        node = self.world.nodes[leader]
        others = [b for b in isr if b not in (leader, controller.broker_id)]
        if not others:
            return False
        follower = f"b{others[0]}"
        pairs = [(node.host, follower), (follower, node.host)]

        def is_proposed() -> bool:
            partition = hosted(node, at)
            return partition is not None and partition.in_sync.pending is not None

        def heal() -> None:
            network.slow_us.pop((node.host, controller.host), None)
            self._heal(pairs)

        def finish() -> None:
            heal()
            self.world.counts["late proposal"] += 1

        for pair in pairs:
            network.cut_link(*pair)
        network.slow_us[node.host, controller.host] = 2600 * MS_US
        self._when(is_proposed, finish, 3 * SECOND_US)
        self.world.events.after(3 * SECOND_US, heal)
        self._note(f"{follower} is cut off from {node.host}, whose next proposal will be late")
        return False  # counted when it happens

    def placed_on_the_dead(self) -> bool:
        """Create a topic on a broker that the controller considers dead."""
        victim, other = self._random_node(), self._controller()
        if victim is None or other is None or victim is other:
            return False
        victim.kill()
        self._after_random_delay(3000, 4000, victim.start)
        ids = [other.broker_id, victim.broker_id]
        registration = paths.broker(victim.broker_id)

        def create() -> None:
            if self._request_change(lambda: self.admin.create_on(ids), f"a topic is made on {ids}"):
                self.world.counts["placed on the dead"] += 1

        def is_registration_gone() -> bool:
            return registration not in self.world.ensemble.tree.nodes and not self.admin.is_busy

        self._when(
            is_registration_gone, lambda: self._after_random_delay(50, 200, create), 3 * SECOND_US
        )
        self._note(f"kill -9 {victim.host}, until a topic is made on it")
        return False  # counted when it happens

    def leaves_while_cleaned(self) -> bool:
        """Move the compacted topic away from a broker with slow threads, while one of them cleans
        its log."""
        at, nodes = TopicPartition(TABLE, 0), self.world.nodes
        assigned = self.cluster.assignment(at) or ()
        hosts = [b for b in assigned if nodes[b].is_serving]
        if not hosts or not self.cluster.plan.compacts:
            return False
        node = nodes[self.world.random.choice(hosts)]
        others = [b for b in assigned if b != node.broker_id]
        target = others + [b for b in nodes if b not in assigned][:1]
        process = node.process
        if process is None or len(target) < 2:
            return False
        recover = self._slow_threads(process, 2 * SECOND_US)

        def is_cleaned() -> bool:
            partition = hosted(node, at)
            return partition is not None and partition.log.cleaning.in_progress

        def move() -> None:
            if self._request_change(
                lambda: self.admin.reassign(at, target), f"{at} moves to {target}"
            ):
                self.world.counts["leaves while cleaned"] += 1

        self._when(lambda: is_cleaned() and not self.admin.is_busy, move, 3 * SECOND_US)
        self.world.events.after(4 * SECOND_US, recover)
        return False  # counted when it happens

    def to_and_fro(self) -> bool:
        """Elect the second replica of a partition, and soon the first one again, both in sync. The
        followers fetch so slowly that each of the two has records that the other lacks."""
        random = self.world.random
        at = TopicPartition(TOPIC, random.randrange(self.cluster.plan.partitions))
        assigned = list(self.cluster.assignment(at) or ())
        leader, isr, _ = self._state(at)
        if len(assigned) < 2 or leader != assigned[0] or assigned[1] not in isr:
            return False
        orders = [[assigned[1], assigned[0], *assigned[2:]], assigned]

        def prefer() -> None:
            if not orders:
                self.world.counts["to and fro"] += 1
                return
            target = orders.pop(0)
            self._request_change(
                lambda: self.admin.reassign(at, target), f"{at} prefers {target[0]}"
            )
            self._when(lambda: not self.admin.is_busy, lambda: elect(target[0]))

        def elect(broker_id: int) -> None:
            self._request_change(lambda: self.admin.elect(False), "preferred election")
            self._when(
                lambda: is_led_by(broker_id), lambda: self._after_random_delay(20, 200, prefer)
            )

        def is_led_by(broker_id: int) -> bool:
            return not self.admin.is_busy and self._state(at)[0] == broker_id

        late_data_us = random.choice((30, 400)) * MS_US
        for pair in permutations([f"b{broker_id}" for broker_id in assigned], 2):
            self._slow(*pair, late_data_us, 2 * SECOND_US)
        prefer()
        return False  # counted when it happens

    def lost_after_cleaning(self) -> bool:
        """Kill all brokers of the compacted topic when a cleaning has left a gap between two
        segments, and delete their recovery checkpoints. The broker with the gap starts first."""
        at, nodes = TopicPartition(TABLE, 0), self.world.nodes
        found: list[Node] = []

        def is_cleaned_with_gap() -> bool:
            _, isr, _ = self._state(at)
            found[:] = [
                nodes[broker_id] for broker_id in isr if _has_compaction_gap(nodes[broker_id], at)
            ]
            return bool(found)

        def kill() -> None:
            first = self.world.random.choice(found)
            for node, partition in self._kill_hosts(at, first):
                node.disk.remove(f"{partition.log.log_dir}/{log_names.RECOVERY_POINT_CHECKPOINT}")
                node.disk.commit_names()
            self._note(
                f"the brokers of {at} lose their recovery checkpoints, {first.host} has a gap"
            )
            self.world.counts["lost after cleaning"] += 1

        self._when(is_cleaned_with_gap, kill, 3 * SECOND_US, every_us=100 * MS_US)
        return False  # counted when it happens

    def _kill_hosts(self, at: TopicPartition, first: Node) -> list[tuple[Node, Partition]]:
        """Kill all replicas of a partition; start `first` before the others."""
        killed = []
        for broker_id in self.cluster.assignment(at) or ():
            node = self.world.nodes[broker_id]
            partition = hosted(node, at)
            if partition is not None:
                node.kill()
                low_ms = 100 if node is first else 3000
                self._after_random_delay(low_ms, low_ms + 500, node.start)
                killed.append((node, partition))
        return killed

    def hung_flush(self) -> bool:
        """Block all flushes of the compacted topic while segments are closed and cleaned. Kill all
        its brokers after they deleted the segments that the last cleaning replaced."""
        at, nodes = TopicPartition(TABLE, 0), self.world.nodes
        found: list[Node] = []

        def has_waited() -> bool:
            for broker_id in self._state(at)[1]:
                partition = hosted(nodes[broker_id], at)
                if partition is not None and _unflushed(partition.log) > _UNFLUSHED_SEGMENTS:
                    found.append(nodes[broker_id])
            return bool(found)

        def kill() -> None:
            if not self._is_stopped:
                self._kill_hosts(at, found[0])
                self._note(f"the brokers of {at} are killed, {found[0].host} has not flushed")
                self.world.counts["hung flush"] += 1

        def has_deleted() -> bool:
            files = files_of(found[0], at)
            return not any(path.endswith(log_names.DELETED_SUFFIX) for path in files)

        def wait() -> None:
            self._when(has_deleted, kill, 2 * SECOND_US, 20 * MS_US)

        def recover() -> None:
            for process in hung:
                process.flush_us = 0

        hosts = [nodes[broker_id] for broker_id in self.cluster.assignment(at) or ()]
        hung = [node.process for node in hosts if node.process is not None]
        for process in hung:
            process.flush_us = 20 * SECOND_US
        self.world.events.after(7 * SECOND_US, recover)
        self._when(
            has_waited, lambda: self._after_random_delay(800, 1800, wait), 5 * SECOND_US, 50 * MS_US
        )
        self._note(f"the disks of {at} hang when they flush")
        return False  # counted when it happens

    def born_within_a_batch(self) -> bool:
        """Delete records up to the middle of a batch, and add a replica, whose log then begins
        there."""
        at = TopicPartition(TRIMMED, 0)
        assigned = self.cluster.assignment(at) or ()
        new = [b for b, n in self.world.nodes.items() if b not in assigned and n.is_serving]
        leader = self.world.nodes.get(self._state(at)[0])
        partition = None if leader is None else hosted(leader, at)
        if leader is None or partition is None or not new:
            return False
        offset = _within_a_batch(leader, partition)
        target = [*assigned[1:], new[0]]

        def is_done() -> bool:
            return not self.admin.is_busy and partition.log.log_start_offset == offset

        def add() -> None:
            if self._request_change(
                lambda: self.admin.reassign(at, target), f"{at} moves to {target}"
            ):
                self.world.counts["born within a batch"] += 1

        if offset >= 0:
            message = f"records below {offset} are deleted, within a batch"
            self._request_change(lambda: self.admin.delete_records(offset), message)
            self._when(is_done, add, 3 * SECOND_US)
        return False  # counted when it happens

    def cut_at_a_roll(self) -> bool:
        """Cut the power of the fragile broker when it has begun a segment, and its slow disk has
        not flushed the previous one, which may lose its end."""
        node = self.world.nodes[self.cluster.plan.power_cut_broker]
        process = node.process
        if process is None or not node.is_serving or self.cluster.power_cut_of_all_us >= 0:
            return False
        recover = self._slow_threads(process, 2 * SECOND_US)

        def has_unflushed_segment() -> bool:
            return node.process is process and any(
                partition.log.segments.active.size
                and any(
                    _is_unsynced(node, segment)
                    for segment in partition.log.local.unflushed_segments
                )
                for partition in node.partitions()
            )

        def cut() -> None:
            if self.cluster.power_cut_of_all_us >= 0:
                return
            node.cut_power(self.world.random.randrange(1 << 30))
            self._after_random_delay(100, 1500, node.power_on)
            self._note(f"power cut at {node.host}, which has just begun a segment")
            self.world.counts["cut at a roll"] += 1

        self._when(has_unflushed_segment, cut, 3 * SECOND_US)
        self.world.events.after(3 * SECOND_US, recover)
        return False  # counted when it happens

    def truncated_while_flushed(self) -> bool:
        """Depose a leader that has begun a segment with records that its followers lack. Another
        replica is preferred. The old leader's slow disk has flushed the previous segment, and the
        leader truncates its log before it learns of that flush."""
        at = TopicPartition(TOPIC, 0)  # one of its producers waits for no follower
        leader, isr, _ = self._state(at)
        node = self.world.nodes.get(leader)
        process = None if node is None else node.process
        others = [broker_id for broker_id in isr if broker_id != leader]
        if node is None or process is None or not others:
            return False
        network = self.world.network
        pairs = [(self.world.nodes[other].host, node.host) for other in others]
        assigned = self.cluster.assignment(at) or ()
        target = [others[0], *(b for b in assigned if b != others[0])]

        def log() -> UnifiedLog | None:
            partition = hosted(node, at)
            return partition.log if partition is not None and partition.is_leader else None

        def is_flushed() -> bool:
            led = log()
            if led is None or led.high_watermark >= led.segments.active.base_offset:
                return False
            return any(not _is_unsynced(node, segment) for segment in led.local.unflushed_segments)

        def has_small_segments() -> bool:
            led = log()
            size = 0 if led is None else led.config.segment_bytes
            return size == _SMALL_SEGMENT_BYTES and not self.admin.is_busy

        def prefer() -> None:
            if self._request_change(
                lambda: self.admin.reassign(at, target), f"{at} prefers {target[0]}"
            ):
                self._when(lambda: not self.admin.is_busy, cut)

        def cut() -> None:
            for pair in pairs:
                network.cut_link(*pair)
            self._note(f"no follower gets to {node.host}")
            self._after_random_delay(5000, 6000, self._slow_threads(process, 5 * SECOND_US))
            self._when(is_flushed, depose, 2 * SECOND_US)
            self.world.events.after(3 * SECOND_US, lambda: self._heal(pairs))

        def depose() -> None:
            if self._request_change(lambda: self.admin.elect(False), "preferred election"):
                self._when(lambda: self._state(at)[0] == target[0], finish)

        def finish() -> None:
            self._heal(pairs)
            self.world.counts["truncated while flushed"] += 1

        change = f"segment.bytes is {_SMALL_SEGMENT_BYTES}"
        if self._request_change(lambda: self.admin.change_config(_SMALL_SEGMENT_BYTES), change):
            self._when(has_small_segments, prefer)
        return False  # counted when it happens

    def truncated_by_wrong_bits(self) -> bool:
        """Depose a leader that has records that its followers lack. It reads one bit of a header
        wrong while it truncates its log."""
        at = self._partition()
        leader, isr, _ = self._state(at)
        node = self.world.nodes.get(leader)
        partition = None if node is None else hosted(node, at)
        if node is None or partition is None or len(isr) < 2:
            return False
        log, network = partition.log, self.world.network
        pairs = [(self.world.nodes[b].host, node.host) for b in isr if b != leader]

        def has_tail() -> bool:
            return log.log_end_offset > log.high_watermark

        def depose() -> None:
            self._expire(leader)
            self._when(lambda: self._state(at)[0] not in {leader, -1}, flip, 2 * SECOND_US)

        def flip() -> None:
            self._heal(pairs)
            found = [p for p in files_of(node, at) if p.endswith(log_names.LOG_SUFFIX)]
            path = max(found, default="")
            end = log.high_watermark
            begin = max((o for o in log.producers.snapshots.offsets if o <= end), default=0)
            data = node.disk.content(path) if path else b""
            place = place_in_header(self.world.random, data, range(begin, end))
            if node.is_up and place is not None and node.disk.flip is None:
                self._flip_reads(node, path, place)
                self.world.counts["truncated by wrong bits"] += 1

        for pair in pairs:
            network.cut_link(*pair)
        self._note(f"no follower gets to {node.host}")
        self._when(has_tail, depose, SECOND_US)
        self.world.events.after(3 * SECOND_US, lambda: self._heal(pairs))
        return False  # counted when it happens


def _unflushed(log: UnifiedLog) -> int:
    """The number of segments above the recovery point."""
    return sum(segment.base_offset >= log.recovery_point for segment in log.segments)


def _is_unsynced(node: Node, segment: LogSegment) -> bool:
    """Whether a power cut may remove the end of a segment, which may be deleted by now."""
    path = segment.records.path
    return node.disk.stat(path) is not None and node.disk.first_unsynced(path) < segment.size


def _has_compaction_gap(node: Node, at: TopicPartition) -> bool:
    """Whether compaction has left a gap between two segments of a log."""
    partition = hosted(node, at)
    if partition is None:
        return False
    with node.without_faults():
        segments = pairwise(list(partition.log.segments))
        return any(segment.next_offset() < after.base_offset for segment, after in segments)


def _within_a_batch(node: Node, partition: Partition) -> int:
    """A committed offset that is not the first of its batch, -1 if none exists."""
    log = partition.log
    with node.without_faults():
        records = log.read(log.log_start_offset, _READ_BYTES, log.high_watermark, True).records
    found = [h.last_offset for _, h in iter_headers(records) if h.base_offset < h.last_offset]
    return max((offset for offset in found if offset > log.log_start_offset), default=-1)
