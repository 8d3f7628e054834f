"""The replicas of every partition during planning: retained, placed or moved."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from kafkapy.admin.planning.levelling import balance
from kafkapy.admin.planning.rack_spread import RackSpread
from kafkapy.common.topic_partition import TopicPartition


class ReplicaTable:
    """Replicas of partitions, by index. `loads` has the number of replicas by broker.

    Call `add` for every partition, then `shrink`, optionally `leave_racks`, `fill`, and optionally
    `balance`.
    """

    def __init__(self, spread: RackSpread) -> None:
        self.loads = dict.fromkeys(sorted(spread.rack_of), 0)
        self._spread = spread
        self._partitions: list[TopicPartition] = []
        self._replicas: list[list[int]] = []
        self._retained: list[set[int]] = []
        """The current replicas that have not moved."""
        self._factors: list[int] = []

    def add(self, tp: TopicPartition, current: Sequence[int], replication_factor: int) -> None:
        """Add a partition with its replicas. Replicas on brokers outside the plan must move."""
        remaining = [broker_id for broker_id in current if broker_id in self.loads]
        for broker_id in remaining:
            self.loads[broker_id] += 1
        self._partitions.append(tp)
        self._replicas.append(remaining)
        self._factors.append(replication_factor)

    def shrink(self) -> None:
        """Drop the replicas above the replication factor."""
        for replicas, factor in zip(self._replicas, self._factors, strict=True):
            for _ in range(len(replicas) - factor):
                self._drop(replicas, self._most_dispensable(replicas))

    def leave_racks(self) -> None:
        """Drop the replicas that are in the wrong rack."""
        for replicas, factor in zip(self._replicas, self._factors, strict=True):
            for broker_id in self._spread.surplus(replicas, factor):
                self._drop(replicas, broker_id)

    def fill(self) -> None:
        """Place the missing replicas."""
        self._retained = [set(replicas) for replicas in self._replicas]
        heaps = {
            rack: [(self.loads[b], b) for b in members]
            for rack, members in self._spread.members.items()
        }
        for heap in heaps.values():
            heapq.heapify(heap)
        for replicas, factor in zip(self._replicas, self._factors, strict=True):
            while len(replicas) < factor:
                racks = self._spread.open_racks(replicas)
                found = (self._least_loaded(heaps[rack], replicas) for rack in racks)
                broker_id = min(found)[1]
                replicas.append(broker_id)
                self.loads[broker_id] += 1

    def balance(self) -> None:
        """Balance the loads as far as racks allow. Newly placed replicas move first, in chains too,
        then retained replicas.

        Of the retained replicas, those of partition 0 of each topic move first, then those of
        partition 1, so that a broker gets a few partitions of every topic.
        """
        placed: dict[int, dict[int, None]] = {broker_id: {} for broker_id in self.loads}
        retained: dict[int, dict[int, None]] = {broker_id: {} for broker_id in self.loads}
        order = sorted(
            range(len(self._partitions)),
            key=lambda row: (self._partitions[row].partition, self._partitions[row].topic),
        )
        for row in order:
            for broker_id in self._replicas[row]:
                (retained if broker_id in self._retained[row] else placed)[broker_id][row] = None
        spread, factors, rack_of = self._spread, self._factors, self._spread.rack_of
        rigid = all(spread.is_rigid(factor) for factor in set(factors))

        def first_movable(rows: Iterable[int], source: int, target: int) -> int | None:
            if rigid and rack_of[source] != rack_of[target]:
                return None
            for row in rows:
                replicas = self._replicas[row]
                if target not in replicas and spread.may_move(
                    replicas, factors[row], source, target
                ):
                    return row
            return None

        def movable_at_no_cost(source: int, target: int) -> int | None:
            return first_movable(placed[source], source, target)

        def movable(source: int, target: int) -> int | None:
            return first_movable(chain(placed[source], retained[source]), source, target)

        def move(row: int, source: int, target: int) -> None:
            replicas = self._replicas[row]
            replicas[replicas.index(source)] = target
            self._retained[row].discard(source)
            placed[source].pop(row, None)
            retained[source].pop(row, None)
            placed[target][row] = None
            # To the end of the order: no partition moves twice while another could move once.
            for broker_id in self._retained[row]:
                retained[broker_id].pop(row)
                retained[broker_id][row] = None
            self.loads[source] -= 1
            self.loads[target] += 1

        balance(self.loads, movable_at_no_cost, move)
        balance(self.loads, movable, move)

    def rows(self) -> Iterator[tuple[TopicPartition, list[int]]]:
        """Partitions with their replicas, in no particular order."""
        yield from zip(self._partitions, self._replicas, strict=True)

    def _drop(self, replicas: list[int], broker_id: int) -> None:
        replicas.remove(broker_id)
        self.loads[broker_id] -= 1

    def _most_dispensable(self, replicas: Sequence[int]) -> int:
        """The replica to drop: in the fullest rack, then on the fullest broker, then the last
        listed.
        """
        counts, rack_of = self._spread.counts(replicas), self._spread.rack_of
        ranked = [
            (counts[rack_of[broker_id]], self.loads[broker_id], position, broker_id)
            for position, broker_id in enumerate(replicas)
        ]
        return max(ranked)[3]

    def _least_loaded(
        self, heap: list[tuple[int, int]], excluded: Sequence[int]
    ) -> tuple[int, int]:
        """(load, broker) of the least loaded broker that is not in `excluded`. Loads never decrease
        during `fill`'s placements.
        """
        skipped = []
        while True:
            load, broker_id = heap[0]
            if load != self.loads[broker_id]:
                heapq.heapreplace(heap, (self.loads[broker_id], broker_id))
            elif broker_id in excluded:
                skipped.append(heapq.heappop(heap))
            else:
                break
        found = heap[0]
        for entry in skipped:
            heapq.heappush(heap, entry)
        return found
