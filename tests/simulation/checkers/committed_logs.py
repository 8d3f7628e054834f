"""Check that logs agree below the high watermark, and that new leaders have all committed records.

A record is committed once a leader's high watermark has covered it: it stays at its offset, in the
same batch on every replica. A leader that lacks committed records lost them. Kafka's rules allow
that in these cases:

- An unclean election of a replica that was not in sync. The replica may die before it leads, and
  be elected again as the only one then in sync. If the replaced leader was cut off, it may go on
  to acknowledge records that it alone has.
- A replica that was the only live one in sync, whose disk was torn by a power cut.
- A replica in sync whose disk was torn while no controller observed its absence: it had returned
  when the electing controller first read the registrations, or its session outlived the power
  cut. This case is excluded if the replica registered after the state's writer read the brokers,
  and another live replica in sync did not. If the replica led, it goes on to lead in its leader
  epoch. The records that it then appends cannot be distinguished from other replicas' records of
  that epoch, so the logs may diverge later too.
- A replica whose disk was torn when all brokers lost power at once.
- A replica whose disk was torn, and which had no recovery checkpoint when it started: the end of a
  closed segment may be missing (decision 0041).

A loss excuses the offsets from the end of the kept records up to the highest log end of any replica
at that time. Records appended there afterwards are checked like all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from kafkapy.common.topic_partition import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from kafkapy.record.batch_header import iter_headers
from kafkapy.replication.partition import Partition
from kafkapy.storage.leader_epoch_cache import EpochEntries
from kafkapy.zk.stores import paths
from kafkapy.zk.zookeeper import Create, Op, SetData
from tests.simulation.checkers.base import Checker, PartitionKey
from tests.simulation.cluster import TABLE, Cluster
from tests.simulation.history import Loss
from tests.simulation.node import Node

_READ_BYTES = 1 << 20


class _Batch(NamedTuple):
    next_offset: int
    leader_epoch: int
    crc: int


class _Committed:
    """The batches of a partition below its highest high watermark, by base offset.

    `end_of_replaced` is the highest offset that a leader committed after it was replaced. `epochs`
    are the leader epochs of the log of the leader that committed last.
    """

    def __init__(self) -> None:
        self.batches: dict[int, _Batch] = {}
        self.end = 0
        self.end_of_replaced = 0
        self.epochs: EpochEntries = []

    def cut(self, end: int) -> None:
        self.batches = {at: b for at, b in self.batches.items() if b.next_offset <= end}
        self.end = min(self.end, end)


class _Election(NamedTuple):
    """Circumstances of an election. `registered` is the czxid of the leader's registration.
    `is_known` is set if the writer of the state before had read that registration; `known` are
    the live members of the ISR whose registrations it had read."""

    leader: int
    isr_before: tuple[int, ...]
    live: tuple[int, ...]
    registered: int
    is_known: bool
    known: tuple[int, ...]
    controller_epoch: int

    @property
    def is_unclean(self) -> bool:
        """Whether the new leader was not in sync."""
        return self.leader >= 0 and bool(self.isr_before) and self.leader not in self.isr_before


class CommittedLogs(Checker):
    """Records the committed batches, and how each leader was elected."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        internal = (GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC)
        self._compacted = (TABLE, *internal) if cluster.plan.compacts else (TABLE,)
        self._committed: dict[PartitionKey, _Committed] = {}
        self._compared: dict[tuple[int, PartitionKey], tuple[int, int]] = {}
        self._elections: dict[tuple[str, int], _Election] = {}
        self._isr: dict[str, tuple[int, ...]] = {}
        self._brokers_zxid: dict[str, int] = {}  # of the brokers that a state's writer had read
        self._latest_leaders: dict[PartitionKey, tuple[int, int]] = {}
        # Log end offsets with the time of observation, and the highest before a power cut.
        self._ends: dict[tuple[int, PartitionKey], tuple[int, int]] = {}
        self._at_risk: dict[tuple[int, PartitionKey], int] = {}
        # The leader epoch in which a broker led when last inspected, -1 if it did not lead.
        self._led_epochs: dict[tuple[int, PartitionKey], int] = {}
        self._written_twice: set[PartitionKey] = set()
        # The broker epochs that a controller found when it took office, by its own epoch.
        self._initial_broker_epochs: dict[int, dict[int, int]] = {}
        self._registered_us: dict[int, int] = {}  # by broker epoch

    def on_step(self, node: Node) -> None:
        controller = node.acting_controller
        if controller is None:
            return
        context = controller.context
        if context.broker_epochs:
            self._initial_broker_epochs.setdefault(
                context.fence.controller_epoch, dict(context.broker_epochs)
            )

    def on_change(self, ops: Sequence[Op]) -> None:
        for op in ops:
            if isinstance(op, Create) and op.path.startswith(f"{paths.BROKER_IDS}/"):
                epoch = self.world.ensemble.tree.nodes[op.path].stat.czxid
                self._registered_us[epoch] = self.world.events.now_us
            elif isinstance(op, Create | SetData) and op.path.endswith("/state"):
                self._state_written(op.path, orjson.loads(op.data), is_new=isinstance(op, Create))

    def _state_written(self, path: str, state: dict[str, Any], *, is_new: bool) -> None:
        leader, before = state["leader"], () if is_new else self._isr.get(path, ())
        election = self._election(path, leader, before)
        self._elections.setdefault((path, state["leader_epoch"]), election)
        self._isr[path] = tuple(state["isr"])
        self._brokers_zxid[path] = state["brokers_zxid"]
        if election.is_unclean:
            self.cluster.unclean_leaders[path] = leader

    def _election(self, path: str, leader: int, isr_before: tuple[int, ...]) -> _Election:
        tree = self.world.ensemble.tree
        live = {
            int(name): tree.nodes[f"{paths.BROKER_IDS}/{name}"].stat.czxid
            for name in tree.child_names(paths.BROKER_IDS)
        }
        until = self._brokers_zxid.get(path, 0)
        return _Election(
            leader,
            isr_before,
            tuple(live),
            live.get(leader, 0),
            live.get(leader, 0) <= until,
            tuple(b for b in isr_before if 0 < live.get(b, 0) <= until),
            int(tree.nodes[paths.CONTROLLER_EPOCH].data),
        )

    def on_partition(self, node: Node, key: PartitionKey, partition: Partition) -> None:
        committed = self._committed.setdefault(key, _Committed())
        self._note_end(node, key, partition)
        epoch = partition.leader_epoch
        latest_epoch, instance = self._latest_leaders.get(key, (-1, 0))
        if partition.is_leader and (latest_epoch, instance) < (epoch, node.run_number):
            self._latest_leaders[key] = (epoch, node.run_number)
            lost = self._check_new_leader(node, key, partition, committed)
            if lost and epoch == latest_epoch:
                self._written_twice.add(key)
        is_latest_leader = partition.is_leader and epoch >= latest_epoch
        self._compare(node, key, partition, committed, is_latest_leader)
        self.cluster.committed_ends[key] = committed.end
        self._led_epochs[node.broker_id, key] = epoch if partition.is_leader else -1

    def on_stopped_serving(self, node: Node, key: PartitionKey, partition: Partition) -> None:
        """Note the records that a leader committed in its last step: its responses may arrive."""
        where = node.broker_id, key
        led = self._led_epochs.get(where, -1)
        if partition.is_leader and led < partition.leader_epoch:  # it began to lead in this step
            self.on_partition(node, key, partition)
        elif led >= 0 and led == partition.leader_epoch:
            committed, (latest_epoch, _) = self._committed[key], self._latest_leaders[key]
            self._compare(node, key, partition, committed, led >= latest_epoch)
            self.cluster.committed_ends[key] = committed.end
        self._led_epochs[where] = -1

    def _note_end(self, node: Node, key: PartitionKey, partition: Partition) -> None:
        """Record a replica's log end. A power cut may cost records up to the end before it."""
        where, now_us = (node.broker_id, key), self.world.events.now_us
        end, seen_us = self._ends.get(where, (0, now_us))
        if seen_us <= node.last_power_cut_us:
            self._at_risk[where] = max(end, self._at_risk.get(where, 0))
        self._ends[where] = partition.log.log_end_offset, now_us

    def _check_new_leader(
        self, node: Node, key: PartitionKey, partition: Partition, committed: _Committed
    ) -> bool:
        """Whether the leader lacks committed records, as Kafka's rules allow."""
        self._allow_gaps(node, key, partition, committed)
        kept, wanted = self._common_end(partition, committed), committed.end
        if kept >= wanted and key.topic_partition.topic not in self._compacted:
            wanted = max(wanted, self.cluster.required_ends.get(key, 0))
            kept = min(partition.log.log_end_offset, wanted)
        path = paths.partition_state(*key.topic_partition)
        unclean = self.cluster.unclean_leaders.pop(path, None)
        if unclean == node.broker_id and key.topic_partition.topic in self._compacted:
            # The logs differ from the first entry on that only one of them has.
            differing = set(partition.log.epochs.entries()) ^ set(committed.epochs)
            kept = min([kept, *(start for _, start in differing)])
        if kept >= wanted:
            return False
        election = self._elections[path, partition.leader_epoch]
        now = self._election(path, node.broker_id, self._isr[path])
        lost = (
            f"leader {node.broker_id} of epoch {partition.leader_epoch} has committed records up to"
            f" offset {kept} of {wanted}"
        )
        was_torn = self._at_risk.get((node.broker_id, key), 0) > kept
        reason = self._excuse(node, election, was_torn)
        if reason is None and unclean == node.broker_id and self.cluster.allows_unclean_elections:
            reason = "an unclean election"
        if reason is None and now.registered != election.registered:
            # The leader restarted after its election, and goes on to lead in that epoch.
            reason = self._excuse(node, now, was_torn)
        if reason is None and key in self._written_twice:
            reason = "a torn replica led on in its epoch, which now has two histories"
        if reason is None:
            self.violated(f"{key.topic_partition}: {lost}; elected by {election}")
        end = max(at for (_, of), (at, _) in self._ends.items() if of == key)
        end = max(end, wanted)
        self._allow(key, kept, end, partition.leader_epoch, f"{reason}: {lost}")
        committed.cut(kept)
        required = self.cluster.required_ends
        required[key] = min(required.get(key, 0), kept)
        for where in [where for where in self._compared if where[1] == key]:
            del self._compared[where]
        return True

    def _allow_gaps(
        self, node: Node, key: PartitionKey, partition: Partition, committed: _Committed
    ) -> None:
        """Excuse the batches in the gaps of a leader that had more before a power cut: without its
        recovery checkpoint it accepted that the end of a closed segment is missing."""
        if not self.cluster.may_have_gaps or key.topic_partition.topic in self._compacted:
            return
        reached = log_start = partition.log.log_start_offset
        for base, batch in self._batches(partition, log_start, partition.log.log_end_offset):
            lost = [at for at in committed.batches if reached <= at < base]
            if lost and self._at_risk.get((node.broker_id, key), 0) > reached:
                text = f"leader {node.broker_id} has a gap that it found without its checkpoint"
                self._allow(key, reached, base, partition.leader_epoch, text)
                for at in lost:
                    del committed.batches[at]
            reached = batch.next_offset

    def _allow(self, key: PartitionKey, kept: int, end: int, epoch: int, reason: str) -> None:
        loss = Loss(kept, end, epoch, self.world.events.now_us, reason)
        self.cluster.history.allow_loss(key.topic_partition, loss)

    def _losses(self, key: PartitionKey) -> list[Loss]:
        return self.cluster.history.losses.get(key.topic_partition, [])

    def _excuse(self, node: Node, election: _Election, was_torn: bool) -> str | None:
        """The reason why committed records may be missing, None if they may not. `was_torn` is set
        if this replica had more records before a power cut."""
        if node.broker_id not in election.isr_before and self.cluster.allows_unclean_elections:
            return "an unclean election"
        if was_torn and self.cluster.power_cut_of_all_us >= 0:
            return "all brokers lost power at once"
        others = [b for b in election.isr_before if b != node.broker_id and b in election.live]
        if was_torn and not others:
            return "the last in-sync replica's disk was torn"
        found = self._initial_broker_epochs.get(election.controller_epoch, {}).get(node.broker_id)
        registered_us = self._registered_us.get(election.registered, 0)
        was_seen = election.registered not in (found, 0) and registered_us > node.last_power_cut_us
        if was_torn and not was_seen and (election.is_known or not election.known):
            return "no controller saw that a torn replica was gone"
        return None

    def _common_end(self, partition: Partition, committed: _Committed) -> int:
        """The end of the committed batches in a log. A compacted log has other batches instead."""
        log = partition.log
        if partition.topic_partition.topic in self._compacted:
            return min(log.log_end_offset, committed.end)
        mine = dict(self._batches(partition, log.log_start_offset, log.log_end_offset))
        for base in sorted(committed.batches):
            batch = committed.batches[base]
            if base >= log.log_start_offset and mine.get(base) != batch:
                return min(base, log.log_end_offset)
        return min(committed.end, log.log_end_offset)

    @staticmethod
    def _batches(partition: Partition, start: int, end: int) -> list[tuple[int, _Batch]]:
        found: list[tuple[int, _Batch]] = []
        while start < end:
            records = partition.log.read(start, _READ_BYTES, end, True).records
            headers = [header for _, header in iter_headers(records)]
            if not headers:
                break
            found += [
                (h.base_offset, _Batch(h.next_offset, h.partition_leader_epoch, h.crc))
                for h in headers
            ]
            start = headers[-1].next_offset
        return found

    def _compare(
        self,
        node: Node,
        key: PartitionKey,
        partition: Partition,
        committed: _Committed,
        may_commit: bool,
    ) -> None:
        """Compare the batches below this replica's high watermark with the committed ones."""
        instance = id(partition)
        known_instance, start = self._compared.get((node.broker_id, key), (0, 0))
        end = partition.log.high_watermark
        if not may_commit and end > committed.end:
            self._check_ahead(node, key, partition, committed, end)
            end = committed.end
        if key.topic_partition.topic in self._compacted:
            committed.end = max(committed.end, end)  # other checkers check the contents
            if may_commit:
                committed.epochs = partition.log.epochs.entries()
            return
        if known_instance != instance:
            start = 0
        reached = start = max(min(start, end), partition.log.log_start_offset)
        for base, batch in self._batches(partition, start, end):
            self._check_gap(node, key, committed, reached, base)
            reached = batch.next_offset
            known = committed.batches.get(base)
            if known is None and base >= committed.end and may_commit and batch.next_offset <= end:
                committed.batches[base] = batch
                committed.end = batch.next_offset
            elif known != batch and batch.next_offset <= end:
                self._check_divergence(node, key, partition, base, batch, known)
        if reached < end:
            # A high watermark may be inside a batch: of a follower that dropped all and began at a
            # log start that DeleteRecords had put there.
            inside = (at for at, batch in committed.batches.items() if at < end < batch.next_offset)
            end = max(reached, min(inside, default=end))
            self._check_gap(node, key, committed, reached, end)
        self._compared[node.broker_id, key] = (instance, end)

    def _check_gap(
        self, node: Node, key: PartitionKey, committed: _Committed, start: int, end: int
    ) -> None:
        """Check that a replica without batches from `start` to `end` lacks no committed ones."""
        if start >= end or self.cluster.may_have_gaps:
            return
        for base, batch in committed.batches.items():
            is_lost = any(loss.touches(base, batch.next_offset) for loss in self._losses(key))
            if start <= base < end and not is_lost:
                self.violated(
                    f"{key.topic_partition}: broker {node.broker_id} has no batch from {start} to"
                    f" {end}; committed was {batch} at offset {base}"
                )

    def _check_ahead(
        self,
        node: Node,
        key: PartitionKey,
        partition: Partition,
        committed: _Committed,
        end: int,
    ) -> None:
        """Check a high watermark beyond the committed end. A replaced leader may still commit
        records that its followers fetched before they learned of the new leader, which has these
        records too. A follower's high watermark comes from a leader."""
        led = self._epoch_led(node, key, partition)
        if led >= 0:
            if not self._was_unclean_after(key, led):
                kept = (loss.kept for loss in self._losses(key) if loss.epoch > led)
                required = self.cluster.required_ends
                required[key] = max(required.get(key, 0), min([end, *kept]))
            committed.end_of_replaced = max(committed.end_of_replaced, end)
            self._excuse_replaced(node, key, partition, committed.end)
        elif end > max([committed.end_of_replaced, *(loss.end for loss in self._losses(key))]):
            self.violated(
                f"{key.topic_partition}: the high watermark of follower {node.broker_id} is {end};"
                f" committed are only records up to {committed.end}"
            )

    def _epoch_led(self, node: Node, key: PartitionKey, partition: Partition) -> int:
        """The leader epoch in which a broker leads or led one step ago, -1 if it did not. In one
        step it may have committed as the leader, and then stepped down or ended."""
        if partition.is_leader:
            return partition.leader_epoch
        return self._led_epochs.get((node.broker_id, key), -1)

    def _excuse_replaced(
        self, node: Node, key: PartitionKey, partition: Partition, kept: int
    ) -> None:
        """Allow a leader that an unclean election has replaced to commit records that it alone has:
        beyond the records that the new leader has committed, or, from `kept` on, in place of
        them."""
        led = self._epoch_led(node, key, partition)
        if led < 0 or not self._was_unclean_after(key, led):
            return
        end = partition.log.high_watermark
        for loss in self._losses(key):
            if loss.epoch > led and loss.kept <= kept and loss.end >= end:
                return
        reason = f"an unclean election: leader {node.broker_id} of epoch {led}, which has not"
        reason += f" heard of it, goes on to commit records up to offset {end}"
        self._allow(key, kept, end, led + 1, reason)

    def _was_unclean_after(self, key: PartitionKey, epoch: int) -> bool:
        """Whether a replica that was not in sync was elected to replace the leader of `epoch`."""
        path = paths.partition_state(*key.topic_partition)
        return self.cluster.allows_unclean_elections and any(
            election.is_unclean
            for (at, later), election in self._elections.items()
            if at == path and later > epoch
        )

    def _check_divergence(
        self,
        node: Node,
        key: PartitionKey,
        partition: Partition,
        base: int,
        batch: _Batch,
        known: _Batch | None,
    ) -> None:
        self._excuse_replaced(node, key, partition, base)
        for loss in self._losses(key):
            # The new leader's log may begin within a batch that other logs have whole.
            if loss.touches(base, batch.next_offset) and batch.leader_epoch <= loss.epoch:
                return
        self.violated(
            f"{key.topic_partition}: below its high watermark {partition.log.high_watermark} broker"
            f" {node.broker_id} has {batch} at offset {base}; committed was {known}"
        )

    def on_end(self) -> None:
        self.world.counts["batches committed"] += sum(
            len(committed.batches) for committed in self._committed.values()
        )
