"""Faults that a simulation injects, one method per kind; `KINDS` names them.

Each fault ends by itself some time later, and all of them end at `stop`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.replication.partition import Partition
from kafkapy.storage import log_names
from kafkapy.zk.stores import paths
from tests.simulation.checkers.base import Violation
from tests.simulation.cluster import TRIMMED
from tests.simulation.courses import SequencedFaults
from tests.simulation.ensemble import HOST as ZOOKEEPER
from tests.simulation.events import MS_US, SECOND_US
from tests.simulation.kill_points import KILL_POINTS, disarm, kill_at
from tests.simulation.node import Node
from tests.simulation.process import THREAD_US
from tests.simulation.staged_faults import StagedFaults

CHECKPOINTS: Final = (
    log_names.RECOVERY_POINT_CHECKPOINT,
    log_names.RECOVERY_POINT_CHECKPOINT,  # recovery makes up for its loss in most ways
    log_names.LOG_START_CHECKPOINT,
    log_names.HIGH_WATERMARK_CHECKPOINT,
    log_names.CLEANER_CHECKPOINT,
)
_DISK_FAILURE_NOTICED_US: Final = 8 * SECOND_US
_CLOCK_JUMP_MAX_MS: Final = 400_000
"""The limit of clock jumps. A broker whose clock is 15 minutes ahead deletes config changes that
other brokers have not read, as in Kafka."""


class Faults(SequencedFaults, StagedFaults):
    """Injects random faults until it is stopped. A fault that is impossible now is skipped."""

    def start(self) -> None:
        """From now on, inject about one fault every `fault_every_us`."""
        every_us = self.cluster.plan.fault_every_us
        self.world.events.after(self.world.random.randrange(1, 2 * every_us), self._next)

    def _next(self) -> None:
        if self._is_stopped:
            return
        weights = self.cluster.plan.weights
        [kind] = self.world.random.choices(list(weights), list(weights.values()))
        if KINDS[kind](self):
            self.world.counts[kind] += 1
        self.start()

    def stop(self) -> None:
        """End all faults, for good."""
        self._is_stopped = True
        self.world.trace.note("faults", "are over")
        self.world.network.heal()
        if self.world.ensemble.is_down:
            self.world.ensemble.start()
        for node in self.world.nodes.values():
            node.mend_disk()
            disarm(node)
            node.short_disk.descriptors_left = node.disk.flip = None
            node.resume()
            if node.process is not None:
                node.process.thread_us, node.process.flush_us = THREAD_US, 0
            if not node.is_up:
                node.power_on()
        if any(node.has_failed_disk for node in self.world.nodes.values()):
            self.world.events.after(_DISK_FAILURE_NOTICED_US, self._replace_disks)

    # processes

    def kill(self) -> bool:
        return self._kill(self._random_node())

    def kill_controller(self) -> bool:
        return self._kill(self._controller())

    def kill_leader(self) -> bool:
        return self._kill(self._leader())

    def kill_at_a_point(self) -> bool:
        """Kill a broker in the middle of a disk change or request, if it soon reaches that step."""
        node = self._random_node()
        if node is None or node.process is None:
            return False
        plan = self.cluster.plan
        names = [name for name, point in KILL_POINTS.items() if point.applies_to(plan)]
        point = self.world.random.choice(names)
        self._note(f"kill -9 {node.host} when {point}")

        def kill() -> None:
            if self._kill(node):
                self.world.counts[f"killed when {point}"] += 1

        kill_at(node, point, self.world.random.choice((1, 1, 2, 4)), kill)
        follows = KILL_POINTS[point].follows
        if follows and KINDS[follows](self):
            self.world.counts[follows] += 1
        return False  # counted when it happens

    def power_cut_of_all(self) -> bool:
        """Cut the power of all machines. This happens once, and no machine loses power later."""
        nodes = [node for node in self.world.nodes.values() if node.is_up]
        if self.cluster.power_cut_of_all_us >= 0 or not nodes:
            return False
        self.cluster.power_cut_of_all_us = self.world.events.now_us
        for node in nodes:
            node.cut_power(self.world.random.randrange(1 << 30))
            self._after_random_delay(100, 3500, node.power_on)
        return self._note("power cut at all brokers")

    def blackout(self) -> bool:
        """Kill the controller and the fragile broker together: the next controller misses both."""
        return self._kill(self._controller()) and self.power_cut()

    def power_cut_after_truncation(self) -> bool:
        """Cut the fragile broker's power soon after it next truncates a log."""
        self._note("the next truncation of the fragile broker costs its power")
        self.cluster.on_truncation = self._on_truncation
        return False  # counted when it happens

    def _on_truncation(self, node: Node, _: Partition) -> None:
        if node.broker_id != self.cluster.plan.power_cut_broker or self._is_stopped:
            return
        self.cluster.on_truncation = lambda node, partition: None

        def cut() -> None:
            if not self._is_stopped and self.power_cut():
                self.world.counts["power cut after truncation"] += 1

        self._after_random_delay(0, 80, cut)

    def pause(self) -> bool:
        node = self._random_node()
        if node is None or node.process is None:
            return False
        process = node.process
        process.pause()

        def resume() -> None:
            if process is node.process:
                self._note(f"{node.host} goes on")
            process.resume()

        self._after_random_delay(300, 4000, resume)
        return self._note(f"{node.host} is paused")

    def controlled_shutdown(self) -> bool:
        node = self._random_node()
        if node is None:
            return False
        node.stop()
        return True

    # links

    def _two_random_hosts(self) -> tuple[str, str]:
        a, b = self.world.random.sample(list(self.world.nodes.values()), 2)
        return a.host, b.host

    def cut_link(self) -> bool:
        a, b = self._two_random_hosts()
        return self._cut([(a, b), (b, a)], f"{a} and {b} are cut off from each other")

    def cut_one_way(self) -> bool:
        a, b = self._two_random_hosts()
        return self._cut([(a, b)], f"nothing gets from {a} to {b}")

    def isolate(self) -> bool:
        node = self.world.random.choice(list(self.world.nodes.values()))
        others = [n.host for n in self.world.nodes.values() if n is not node] + [ZOOKEEPER]
        pairs = [pair for o in others for pair in ((node.host, o), (o, node.host))]
        return self._cut(pairs, f"{node.host} is cut off from all but clients")

    def cut_from_zookeeper(self) -> bool:
        node = self.world.random.choice(list(self.world.nodes.values()))
        pairs = [(node.host, ZOOKEEPER), (ZOOKEEPER, node.host)]
        way = self.world.random.randrange(3)
        chosen = pairs if way == 0 else [pairs[way - 1]]
        return self._cut(chosen, f"cut: {', '.join(f'{a} to {b}' for a, b in chosen)}")

    def slow_link(self) -> bool:
        hosts = [n.host for n in self.world.nodes.values()]
        a, b = self.world.random.sample([*hosts, ZOOKEEPER], 2)
        network = self.world.network
        network.slow_us[a, b] = self.world.random.randrange(20, 800) * MS_US

        def recover() -> None:
            network.slow_us.pop((a, b), None)

        self._after_random_delay(500, 4000, recover)
        return self._note(f"{a} to {b} is slow")

    # ZooKeeper

    def expire_session(self) -> bool:
        node = self._random_node()
        if node is None:
            return False
        found = self.world.ensemble.tree.nodes.get(paths.broker(node.broker_id))
        if found is None:
            return False
        self._note(f"the session of {node.host} expires")
        self.world.ensemble.expire(found.stat.ephemeral_owner)
        return True

    def zookeeper_restart(self) -> bool:
        ensemble = self.world.ensemble
        if ensemble.is_down:
            return False
        ensemble.stop()

        def start() -> None:
            if ensemble.is_down:
                ensemble.start()

        self._after_random_delay(100, 2500, start)
        return self._note("ZooKeeper is down")

    def lost_answer(self) -> bool:
        """Write the next partition state, but drop the response to the controller."""
        self.world.ensemble.lose_answer("state")
        return self._note("the answer to the next write of a partition state is lost")

    def depose_controller(self) -> bool:
        """Delete the controller's znode by hand: the controller is notified later than others."""
        ensemble = self.world.ensemble
        if ensemble.is_down or paths.CONTROLLER not in ensemble.tree.nodes:
            return False
        self._note("the controller is deposed")
        ensemble.remove(paths.CONTROLLER)
        return True

    # disks

    def disk_failure(self) -> bool:
        node = self.world.random.choice((self._random_node, self._leader))()
        if node is None or not node.is_serving:
            return False
        disk = node.faulty_disk
        disk.prefix = self.world.random.choice(node.log_dirs)
        disk.fail_at = disk.changes + self.world.random.randrange(1, 20)
        disk.for_good = True

        def replace() -> None:
            if not self._is_stopped:
                self._replace_disk(node)

        self._after_random_delay(1000, 9000, replace)
        return self._note(f"the disk {disk.prefix} of {node.host} fails soon")

    def _replace_disks(self) -> None:
        """Replace failed disks after the end of faults. Other brokers must lead their partitions by
        then."""
        for at in self.cluster.partitions():
            state = self.cluster.znode(paths.partition_state(*at)) or {}
            leader, isr = state.get("leader"), state.get("isr") or []
            assert isinstance(isr, list)
            for node in self.world.nodes.values():
                hosts = [partition.topic_partition for partition in node.partitions()]
                is_offline = node.has_failed_disk and at not in hosts
                if is_offline and node.broker_id == leader and len(isr) > 1:
                    message = (
                        f"{at} is still led by broker {leader}, whose disk failed, of ISR {isr}"
                    )
                    raise Violation("Convergence", message)
        for node in self.world.nodes.values():
            self._replace_disk(node)

    def _replace_disk(self, node: Node) -> None:
        """Restart a broker that runs without one of its disks, with a sound disk."""
        if node.has_failed_disk:
            self._note(f"{node.host} restarts for its new disk")
            node.kill()
            node.start()

    def slow_disk(self) -> bool:
        """Slow a broker's threads down, above all at fsync."""
        node = self._random_node()
        if node is None or node.process is None:
            return False
        most_us = self.world.random.randrange(200, 2500) * MS_US
        self._after_random_delay(500, 4000, self._slow_threads(node.process, most_us))
        return self._note(f"the disk of {node.host} is slow")

    def few_descriptors(self) -> bool:
        """Limit the files that a broker can open for a while."""
        node = self._random_node()
        if node is None or node.short_disk.descriptors_left is not None:
            return False
        node.short_disk.descriptors_left = self.world.random.randrange(6)

        def recover() -> None:
            node.short_disk.descriptors_left = None

        self._after_random_delay(50, 1500, recover)
        return self._note(f"{node.host} has {node.short_disk.descriptors_left} descriptors left")

    def lost_checkpoint(self) -> bool:
        """Lose or damage one of a directory's checkpoints while its broker is down."""
        node = self._random_node()
        if node is None:
            return False
        random, directory = self.world.random, self.world.random.choice(node.log_dirs)
        name = random.choice(CHECKPOINTS)
        path = f"{directory}/{name}"
        if node.disk.stat(path) is None or not self._kill(node):
            return False
        node.disk.remove(path)
        if random.random() < 0.5:
            file = node.disk.open(path, create=True)
            file.pwritev([random.choice((b"", b"0\n3\nnonsense"))], 0)
            file.close()
        node.disk.commit_names()
        return self._note(f"{path} of {node.host} is lost")

    def clock_jump(self) -> bool:
        """Set a machine's clock to another time."""
        node = self.world.random.choice(list(self.world.nodes.values()))
        ahead_ms = self.world.random.randrange(-_CLOCK_JUMP_MAX_MS, _CLOCK_JUMP_MAX_MS)
        node.wall_ahead_ms = ahead_ms
        return self._note(f"the clock of {node.host} is set {ahead_ms} ms ahead")

    # administration

    def move_directory(self) -> bool:
        """Move a replica to another directory of its broker."""
        node = self._random_node()
        if node is None or not node.partitions():
            return False
        hosted = self.world.random.choice(node.partitions())
        at, now = hosted.topic_partition, hosted.log.log_dir
        path = self.world.random.choice([p for p in node.log_dirs if p != now] or [now])
        return self._request_change(
            lambda: self.admin.move(node.broker_id, at, path),
            f"{at} of {node.host} moves to {path}",
        )

    def change_config(self) -> bool:
        size = self.world.random.choice((300, 1000, 4096, 100_000))
        return self._request_change(
            lambda: self.admin.change_config(size), f"segment.bytes is {size}"
        )

    def reassign(self) -> bool:
        random, partition = self.world.random, self._partition()
        least = min(self.cluster.plan.replication_factor, len(self.world.nodes))
        count = random.randrange(least, len(self.world.nodes) + 1)
        target = random.sample(list(self.world.nodes), count)
        return self._request_change(
            lambda: self.admin.reassign(partition, target), f"{partition} moves to {target}"
        )

    def cancel_reassignment(self) -> bool:
        partition = self._partition()
        return self._request_change(
            lambda: self.admin.reassign(partition, None), f"the move of {partition} is cancelled"
        )

    def delete_records(self) -> bool:
        """Delete records of the trimmed topic up to a random offset, perhaps within a batch."""
        at = TopicPartition(TRIMMED, 0)
        hosted = [p for node in self.world.nodes.values() for p in node.partitions()]
        ends = [p.log.high_watermark for p in hosted if p.topic_partition == at]
        low, high = self.cluster.history.trimmed_to.get(at, 0), max(ends, default=0)
        if high <= low:
            return False
        offset = self.world.random.randrange(low, high) + 1
        return self._request_change(
            lambda: self.admin.delete_records(offset), f"records below {offset} are deleted"
        )

    def preferred_election(self) -> bool:
        return self._request_change(lambda: self.admin.elect(False), "preferred election")

    def unclean_election(self) -> bool:
        return self._request_change(lambda: self.admin.elect(True), "unclean election")

    def create_topic(self) -> bool:
        return self._request_change(self.admin.create_topic, "a topic is made")

    def delete_topic(self) -> bool:
        name = self._other_topic()
        if name is None:
            return False
        return self._request_change(lambda: self.admin.delete_topic(name), f"{name} is deleted")

    def grow_topic(self) -> bool:
        name = self._other_topic()
        if name is None:
            return False
        return self._request_change(
            lambda: self.admin.grow_topic(name), f"{name} gets another partition"
        )


KINDS: Final[dict[str, Callable[[Faults], bool]]] = {
    "kill": Faults.kill,
    "kill controller": Faults.kill_controller,
    "kill leader": Faults.kill_leader,
    "kill at a point": Faults.kill_at_a_point,
    "power cut": Faults.power_cut,
    "power cut of all": Faults.power_cut_of_all,
    "blackout": Faults.blackout,
    "power cut after truncation": Faults.power_cut_after_truncation,
    "pause": Faults.pause,
    "controlled shutdown": Faults.controlled_shutdown,
    "cut link": Faults.cut_link,
    "cut one way": Faults.cut_one_way,
    "isolate": Faults.isolate,
    "cut from zookeeper": Faults.cut_from_zookeeper,
    "expire session": Faults.expire_session,
    "zookeeper restart": Faults.zookeeper_restart,
    "lost answer": Faults.lost_answer,
    "depose controller": Faults.depose_controller,
    "slow link": Faults.slow_link,
    "disk failure": Faults.disk_failure,
    "reassign": Faults.reassign,
    "cancel reassignment": Faults.cancel_reassignment,
    "preferred election": Faults.preferred_election,
    "unclean election": Faults.unclean_election,
    "delete records": Faults.delete_records,
    "create topic": Faults.create_topic,
    "delete topic": Faults.delete_topic,
    "grow topic": Faults.grow_topic,
    "change config": Faults.change_config,
    "move to another directory": Faults.move_directory,
    "clock jump": Faults.clock_jump,
    "slow disk": Faults.slow_disk,
    "few descriptors": Faults.few_descriptors,
    "lost checkpoint": Faults.lost_checkpoint,
    "lost index": Faults.lost_index,
    "lost snapshot": Faults.lost_snapshot,
    "flipped bit": Faults.flipped_bit,
    "cut client": Faults.cut_client,
    "newcomer dies": Faults.newcomer_dies,
    "deletion halts": Faults.deletion_halts,
    "emptied log": Faults.emptied_log,
    "misplaced batch": Faults.misplaced_batch,
    "stranded move": Faults.stranded_move,
    "copied tail": Faults.copied_tail,
    "joiner expires": Faults.joiner_expires,
    "deposed at work": Faults.deposed_at_work,
    "all die at a decision": Faults.all_die_at_a_decision,
    "late proposal": Faults.late_proposal,
    "placed on the dead": Faults.placed_on_the_dead,
    "leaves while cleaned": Faults.leaves_while_cleaned,
    "to and fro": Faults.to_and_fro,
    "lost after cleaning": Faults.lost_after_cleaning,
    "born within a batch": Faults.born_within_a_batch,
    "cut at a roll": Faults.cut_at_a_roll,
    "truncated while flushed": Faults.truncated_while_flushed,
    "hung flush": Faults.hung_flush,
    "truncated by wrong bits": Faults.truncated_by_wrong_bits,
}
