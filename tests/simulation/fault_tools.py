"""Base class of faults: the choice of a target, the end of a fault, notes in the trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.replication.partition import Partition
from kafkapy.zk.stores import paths
from tests.simulation.admin import Admin
from tests.simulation.cluster import OTHER_TOPIC_PREFIX, RETAINED, TABLE, TOPIC, TRIMMED, Cluster
from tests.simulation.events import MS_US, SECOND_US
from tests.simulation.node import Node
from tests.simulation.process import THREAD_US, SimProcess

CHECK_INTERVAL_US: Final = 3 * MS_US


def hosted(node: Node, at: TopicPartition) -> Partition | None:
    """The replica of a partition on a broker."""
    return next((p for p in node.partitions() if p.topic_partition == at), None)


def files_of(node: Node, at: TopicPartition) -> list[str]:
    """The paths of a partition's files on a broker's disk."""
    return [path for path in node.disk.paths() if path.split("/")[-2] == str(at)]


class FaultTools:
    """Base class of faults."""

    def __init__(self, cluster: Cluster, admin: Admin) -> None:
        self.cluster = cluster
        self.world = cluster.world
        self.admin = admin
        self._is_stopped = False

    def _after_random_delay(self, low_ms: int, high_ms: int, undo: Callable[[], None]) -> None:
        delay_us = self.world.random.randrange(low_ms, high_ms) * MS_US
        self.world.events.after(delay_us, undo)

    def _random_node(self) -> Node | None:
        running = [n for n in self.world.nodes.values() if n.is_serving and not n.is_paused]
        return self.world.random.choice(running) if running else None

    def _leader(self) -> Node | None:
        index = self.world.random.randrange(self.cluster.plan.partitions)
        state = self.cluster.znode(paths.partition_state(TOPIC, index)) or {}
        leader = state.get("leader", -1)
        assert isinstance(leader, int)
        return self.world.nodes.get(leader)

    def _controller(self) -> Node | None:
        controller = self.cluster.znode(paths.CONTROLLER) or {}
        broker_id = controller.get("brokerid", -1)
        assert isinstance(broker_id, int)
        return self.world.nodes.get(broker_id)

    def _note(self, message: str) -> bool:
        self.world.trace.note("fault", message)
        return True

    def power_cut(self) -> bool:
        """Cut the power of the fragile broker for a while."""
        node = self.world.nodes[self.cluster.plan.power_cut_broker]
        if not node.is_up or self.cluster.power_cut_of_all_us >= 0:
            return False
        node.cut_power(self.world.random.randrange(1 << 30))
        self._after_random_delay(100, 3500, node.power_on)
        return self._note(f"power cut at {node.host}")

    def _kill(self, node: Node | None) -> bool:
        if node is None or not node.is_up:
            return False
        node.kill()
        self._after_random_delay(100, 3500, node.start)
        return self._note(f"kill -9 {node.host}")

    def _cut(self, pairs: list[tuple[str, str]], message: str) -> bool:
        for pair in pairs:
            self.world.network.cut_link(*pair)
        self._after_random_delay(200, 4500, lambda: self._heal(pairs))
        return self._note(message)

    def _heal(self, pairs: list[tuple[str, str]]) -> None:
        for pair in pairs:
            self.world.network.heal_link(*pair)

    def _flip_reads(self, node: Node, path: str, place: int) -> bool:
        """Flip one bit in a broker's reads of a file for a while."""
        flip = node.disk.flip_bit(path, place, self.world.random.randrange(8))

        def mend() -> None:
            if node.disk.flip is flip:
                node.disk.flip = None

        self._after_random_delay(200, 3000, mend)
        return self._note(f"{node.host} reads a bit of {path} wrong, of byte {place}")

    def _request_change(self, work: Callable[[], object], message: str) -> bool:
        if self.admin.is_busy:
            return False
        self.admin.begin(work())
        return self._note(message)

    def _partition(self) -> TopicPartition:
        """A random partition under test."""
        plan = self.cluster.plan
        found = [TopicPartition(TOPIC, index) for index in range(plan.partitions)]
        found += [TopicPartition(TRIMMED, 0)] * plan.trims
        found += [TopicPartition(TABLE, 0)] * plan.compacts
        found += [TopicPartition(RETAINED, 0)] * plan.retains
        return self.world.random.choice(found)

    def _other_topic(self) -> str | None:
        """A random topic that no client writes to."""
        others = [name for name in self.cluster.topics() if name.startswith(OTHER_TOPIC_PREFIX)]
        return self.world.random.choice(others) if others else None

    def _when(
        self,
        condition: Callable[[], bool],
        then: Callable[[], None],
        limit_us: int = SECOND_US,
        every_us: int = CHECK_INTERVAL_US,
    ) -> None:
        """Call `then` as soon as `condition()` is true, unless all faults have ended by then."""
        events = self.world.events
        end_us = events.now_us + limit_us

        def check() -> None:
            if self._is_stopped or events.now_us > end_us:
                return
            if condition():
                then()
            else:
                events.after(every_us, check)

        check()

    def _slow(self, source: str, target: str, delay_us: int, for_us: int) -> None:
        """Slow a link down for a while."""
        slow_us, link = self.world.network.slow_us, (source, target)
        slow_us[link] = delay_us
        self.world.events.after(for_us, lambda: slow_us.pop(link, None))

    def _slow_threads(self, process: SimProcess, most_us: int) -> Callable[[], None]:
        """Slow a broker's threads down until the returned function is called. If two faults do so,
        the end of the first one ends both."""
        process.thread_us = most_us

        def recover() -> None:
            process.thread_us = THREAD_US

        return recover

    def _state(self, at: TopicPartition) -> tuple[int, list[int], int]:
        """The leader, ISR and leader epoch in ZooKeeper."""
        state = self.cluster.znode(paths.partition_state(*at))
        if state is None:
            return -1, [], -1
        leader, isr, epoch = state["leader"], state["isr"], state["leader_epoch"]
        assert isinstance(leader, int)
        assert isinstance(isr, list)
        assert isinstance(epoch, int)
        return leader, isr, epoch

    def _expire(self, broker_id: int) -> None:
        registration = self.world.ensemble.tree.nodes.get(paths.broker(broker_id))
        if registration is not None:
            self.world.ensemble.expire(registration.stat.ephemeral_owner)
