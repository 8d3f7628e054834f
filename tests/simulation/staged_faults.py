"""Faults of several steps, which lead to states that single faults rarely reach."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Final

from kafkapy.common.topic_partition import TopicPartition
from kafkapy.replication.partition import Partition
from kafkapy.storage.log_names import SNAPSHOT_SUFFIX
from kafkapy.zk.stores import paths
from tests.simulation.cluster import TRIMMED
from tests.simulation.events import SECOND_US
from tests.simulation.fault_tools import FaultTools, files_of, hosted
from tests.simulation.flips import batches_in, lower_offsets, place_in_batch
from tests.simulation.node import Node

_INDEX: Final = re.compile(r"/\d{20}\.(index|timeindex)$")
_DERIVED: Final = re.compile(r"-\d+/(\d{20}\.snapshot|leader-epoch-checkpoint)$")
_PREALLOCATED_BYTES: Final = 1000
"""Indexes of active segments are preallocated, and larger than this."""
_LOG: Final = re.compile(r"/(orders|trimmed|table|retained|ledger|copies)-\d+/\d{20}\.log$")
_OFFSET_BYTES: Final = 8
"""The base offset, with which a batch begins."""
_SESSION_EXPIRED_MS: Final = 1700


class StagedFaults(FaultTools):
    """Faults of several steps, one method each; `faults` has the others."""

    def cut_client(self) -> bool:
        """Cut one direction of a link between a client and a broker."""
        brokers = [node.host for node in self.world.nodes.values()]
        clients = [p.host for p in self.world.processes if not p.is_dead and p.host not in brokers]
        random = self.world.random
        pair = [random.choice(list(dict.fromkeys(clients))), random.choice(brokers)]
        random.shuffle(pair)
        return self._cut([(pair[0], pair[1])], f"nothing gets from {pair[0]} to {pair[1]}")

    def lost_index(self) -> bool:
        """Lose some indexes of a broker while it is down, or flip a bit in them permanently."""
        return self._lose_files("indexes", _INDEX, lambda path, size: size < _PREALLOCATED_BYTES)

    def lost_snapshot(self) -> bool:
        """Lose some files that a broker can rebuild from batches while it is down, or flip a bit in
        them permanently."""
        return self._lose_files(
            "snapshots", _DERIVED, lambda path, size: path.endswith(SNAPSHOT_SUFFIX)
        )

    def _lose_files(
        self, message: str, wanted: re.Pattern[str], may_flip: Callable[[str, int], bool]
    ) -> bool:
        """Remove some files of a broker that is killed, or flip a bit of those that may rot."""
        node, random = self._random_node(), self.world.random
        found = [] if node is None else [p for p in node.disk.paths() if wanted.search(p)]
        if node is None or not found or not self._kill(node):
            return False
        for path in random.sample(found, 1 + len(found) // 3):
            data = node.disk.content(path)
            if data and may_flip(path, len(data)) and random.random() < 0.7:
                places = lower_offsets(data) if path.endswith(".index") else []
                anywhere = random.randrange(len(data)), random.randrange(8)
                node.disk.flip_permanently(path, *(random.choice(places) if places else anywhere))
            else:
                node.disk.remove(path)
        node.disk.commit_names()
        return self._note(f"{message} of {node.host} are lost or damaged")

    def flipped_bit(self) -> bool:
        """Flip one bit of a batch in a broker's reads for a while."""
        node, random = self._random_node(), self.world.random
        if node is None or node.disk.flip is not None:
            return False
        found = [path for path in node.disk.paths() if _LOG.search(path)]
        path = random.choice(found) if found else ""
        place = place_in_batch(random, node.disk.content(path)) if path else None
        if place is None:
            return False
        return self._flip_reads(node, path, place)

    def misplaced_batch(self) -> bool:
        """Cut the power of the fragile broker while batches are written, and lower the base offset
        of one of them permanently. The CRC does not cover it: only the order reveals it."""
        node, random = self.world.nodes[self.cluster.plan.power_cut_broker], self.world.random
        unsynced = {p: node.disk.first_unsynced(p) for p in node.disk.paths() if _LOG.search(p)}
        if not self.power_cut():
            return False
        found = []
        for path in set(unsynced).intersection(node.disk.paths()):
            batches = batches_in(node.disk.content(path))
            for (_, end), (start, _) in pairwise([(0, 0), *batches]):
                if start != end:
                    break  # recovery ends here
                if start >= max(unsynced[path], 1):
                    found.append((path, start))
        if not found:
            return False
        path, start = random.choice(sorted(found))
        offset = int.from_bytes(node.disk.content(path)[start : start + _OFFSET_BYTES], "big")
        bit = offset.bit_length() - 1
        node.disk.flip_permanently(path, start + _OFFSET_BYTES - 1 - bit // 8, bit % 8)
        return self._note(f"batch {offset} of {path} says that it is batch {offset ^ 1 << bit}")

    def newcomer_dies(self) -> bool:
        """Pause a replica that was just added, and kill it before it has caught up."""
        at = self._partition()
        assigned = self.cluster.assignment(at) or ()
        others = [
            node
            for node in self.world.nodes.values()
            if node.is_serving and not node.is_paused and node.broker_id not in assigned
        ]
        if not others or self.admin.is_busy:
            return False
        node = self.world.random.choice(others)
        node.pause()
        self._kill_later(200, 1200, node)
        target = [*assigned[1:], node.broker_id]
        return self._request_change(
            lambda: self.admin.reassign(at, target), f"{at} moves to {target}; {node.host} stalls"
        )

    def deletion_halts(self) -> bool:
        """Delete a topic while one of its brokers is down and another one dies, or does not answer
        the controller."""
        name, controller = self._other_topic(), self._controller()
        topic = self.cluster.znode(paths.topic(name)) if name else None
        if name is None or topic is None or self.admin.is_busy:
            return False
        rows = topic["partitions"]
        assert isinstance(rows, dict)
        hosts = sorted({b for replicas in rows.values() for b in replicas})
        able = [self.world.nodes[b] for b in hosts if self.world.nodes[b] is not controller]
        able = [node for node in able if node.is_serving and not node.is_paused]
        if len(able) < 2:
            return False
        gone, mute = self.world.random.sample(able, 2)
        gone.kill()

        def delete() -> None:
            if self._is_stopped:
                return
            controller = self._controller()
            self._after_random_delay(0, 800, gone.start)
            if controller is None or controller is mute:
                return
            if self.world.random.random() < 0.5:
                link = [(mute.host, controller.host)]
                self._cut(link, f"{mute.host} does not answer {controller.host}")
            else:
                self._kill_later(1, 60, mute)
            self._request_change(lambda: self.admin.delete_topic(name), f"{name} is deleted")

        self._after_random_delay(_SESSION_EXPIRED_MS, _SESSION_EXPIRED_MS + 600, delete)
        return self._note(f"kill -9 {gone.host}, until {name} is deleted")

    def emptied_log(self) -> bool:
        """Delete all records of the trimmed topic while its leader is alone. A follower that has
        lost its log begins a new one at the leader's log end. The leader loses power at this
        moment, and comes back with a lower log end."""
        plan, at, nodes = self.cluster.plan, TopicPartition(TRIMMED, 0), self.world.nodes
        leader_id, _, _ = self._state(at) if plan.trims else (-1, [], -1)
        leader = nodes.get(leader_id)
        others = [nodes[b] for b in self.cluster.assignment(at) or () if b != leader_id]
        if (
            leader is None
            or not leader.is_serving
            or not others
            or self.cluster.power_cut_of_all_us >= 0
        ):
            return False
        if any(node.last_power_cut_us >= 0 for node in nodes.values() if node is not leader):
            return False  # only one broker of a seed may lose its power alone
        plan.power_cut_broker = leader_id
        late = self.world.random.choice(others)

        def is_alone() -> bool:
            return self._state(at)[:2] == (leader_id, [leader_id]) and not self.admin.is_busy

        def trim() -> None:
            led = hosted(leader, at)
            if led is None or self._is_stopped:
                return
            end = led.log.high_watermark
            if self._request_change(lambda: self.admin.delete_records(end), f"{at} is emptied"):
                self.cluster.on_truncation = self._cut_power_when_emptied(late, leader, at)
                self._when(lambda: has_trimmed(end), come_back)

        def has_trimmed(offset: int) -> bool:
            led = hosted(leader, at)
            return led is not None and led.log.log_start_offset == offset

        def come_back() -> None:
            if late.is_up:
                return
            for path in files_of(late, at):
                late.disk.remove(path)
            late.disk.commit_names()
            late.start()

        for node in others:
            node.kill()
            self._after_random_delay(4000, 6000, node.start)
        self._when(is_alone, lambda: self._after_random_delay(50, 400, trim), 3 * SECOND_US)
        return self._note(f"kill -9 {' '.join(n.host for n in others)}, until {at} is emptied")

    def _kill_later(self, low_ms: int, high_ms: int, node: Node) -> None:
        """Kill a broker, unless all faults have ended by then."""

        def kill() -> None:
            if node.is_up and not self._is_stopped:
                node.kill()
                self._after_random_delay(100, 2100, node.start)
                self._note(f"kill -9 {node.host}")

        self._after_random_delay(low_ms, high_ms, kill)

    def _cut_power_when_emptied(
        self, late: Node, leader: Node, at: TopicPartition
    ) -> Callable[[Node, Partition], None]:
        def truncated(node: Node, partition: Partition) -> None:
            if node is not late or partition.topic_partition != at or self._is_stopped:
                return
            self.cluster.on_truncation = lambda node, partition: None
            self.world.events.after(0, cut)

        def cut() -> None:
            if leader.is_up and self.cluster.power_cut_of_all_us < 0 and not self._is_stopped:
                leader.cut_power(self.world.random.randrange(1 << 30))
                self._after_random_delay(100, 1500, leader.power_on)
                self._note(f"power cut at {leader.host}, for {late.host} has emptied {at}")
                self.world.counts["power cuts after a log was emptied"] += 1

        return truncated
