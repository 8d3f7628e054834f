"""Chooses and balances the preferred leaders of partitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kafkapy.admin.planning.levelling import balance
from kafkapy.common.topic_partition import TopicPartition


class Leaders:
    """Partitions with their replicas and leaders. `counts` has the number of leaders by broker."""

    def __init__(self, broker_ids: Sequence[int]) -> None:
        self.counts = dict.fromkeys(sorted(broker_ids), 0)
        self._partitions: list[TopicPartition] = []
        self._replicas: list[list[int]] = []
        self._leaders: list[int | None] = []
        self._retained: list[set[int]] = []

    def add(self, tp: TopicPartition, current: Sequence[int], planned: Sequence[int]) -> None:
        """Add a partition. Its current leader stays if it is a planned replica."""
        retained = [broker_id for broker_id in current if broker_id in planned]
        leader = current[0] if current and current[0] in planned else None
        self._partitions.append(tp)
        self._replicas.append([*retained, *(b for b in planned if b not in retained)])
        self._retained.append(set(retained))
        self._leaders.append(leader)
        if leader is not None:
            self.counts[leader] += 1

    def choose_missing(self) -> None:
        """Choose a leader for each partition whose leader was removed: of the replicas with data,
        the one on the broker with the fewest leaders.
        """
        for row, leader in enumerate(self._leaders):
            if leader is None:
                replicas, retained = self._replicas[row], self._retained[row]
                chosen = min(
                    replicas, key=lambda b: (b not in retained, self.counts[b], replicas.index(b))
                )
                self._leaders[row] = chosen
                self.counts[chosen] += 1

    def balance(self) -> None:
        """Balance the leaders. A leader moves only to another replica of its partition."""
        movable_rows: dict[int, dict[int, dict[int, None]]] = {
            b: {other: {} for other in self.counts} for b in self.counts
        }
        for row in range(len(self._partitions)):
            self._add_movable_row(movable_rows, row)

        def movable(source: int, target: int) -> int | None:
            return next(iter(movable_rows[source][target]), None)

        def move(row: int, source: int, target: int) -> None:
            for other in self._replicas[row]:
                movable_rows[source][other].pop(row, None)
            self._leaders[row] = target
            self._add_movable_row(movable_rows, row)
            self.counts[source] -= 1
            self.counts[target] += 1

        balance(self.counts, movable, move)

    def assignment(self) -> Iterator[tuple[TopicPartition, tuple[int, ...]]]:
        """Each partition's replicas: its leader, the other remaining ones, then the new ones."""
        for tp, replicas, leader in zip(
            self._partitions, self._replicas, self._leaders, strict=True
        ):
            assert leader is not None, tp
            yield tp, (leader, *(b for b in replicas if b != leader))

    def _add_movable_row(
        self, movable_rows: dict[int, dict[int, dict[int, None]]], row: int
    ) -> None:
        leader = self._leaders[row]
        assert leader is not None, row
        for other in self._replicas[row]:
            if other != leader:
                movable_rows[leader][other][row] = None
