"""Placements of one partition's replicas over racks.

No rack has a second replica before every rack has one, and none has more than necessary. Brokers
without racks are all in one rack, so racks have no effect then.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kafkapy.common.placement import BrokerPlace


class RackSpread:
    """The racks of the brokers that replicas may be on."""

    def __init__(self, brokers: Sequence[BrokerPlace]) -> None:
        self.rack_of = {broker.broker_id: broker.rack or "" for broker in brokers}
        self.members: dict[str, list[int]] = {}
        for broker_id in sorted(self.rack_of):
            self.members.setdefault(self.rack_of[broker_id], []).append(broker_id)
        self._limits: dict[int, int] = {}

    def limit(self, replication_factor: int) -> int:
        """The smallest limit of replicas per rack with which all replicas of a partition fit."""
        limit = self._limits.get(replication_factor)
        if limit is None:
            limit = 1
            while self._capacity(limit) < replication_factor:
                limit += 1
            self._limits[replication_factor] = limit
        return limit

    def is_rigid(self, replication_factor: int) -> bool:
        """Whether every rack is at its limit, so that no replica can go to another rack."""
        return self._capacity(self.limit(replication_factor)) == replication_factor

    def counts(self, replicas: Collection[int]) -> dict[str, int]:
        """The number of replicas by rack. Racks without replicas are left out."""
        found: dict[str, int] = {}
        for broker_id in replicas:
            rack = self.rack_of[broker_id]
            found[rack] = found.get(rack, 0) + 1
        return found

    def surplus(self, replicas: Sequence[int], replication_factor: int) -> list[int]:
        """The replicas that must leave their rack, the last listed first."""
        counts = self.counts(replicas)
        limit = self.limit(replication_factor)
        needed = min(replication_factor, len(self.members)) - len(counts)
        vacancies = replication_factor - len(replicas)
        leaving: list[int] = []
        fullest_first = sorted(
            range(len(replicas)), key=lambda index: (-counts[self.rack_of[replicas[index]]], -index)
        )
        for broker_id in (replicas[index] for index in fullest_first):
            rack = self.rack_of[broker_id]
            is_alone = counts[rack] == 1
            if counts[rack] > limit or (not is_alone and needed > vacancies + len(leaving)):
                counts[rack] -= 1
                leaving.append(broker_id)
        return leaving

    def open_racks(self, replicas: Collection[int]) -> list[str]:
        """The racks for a partition's next replica: those with room, and with fewest of its
        replicas.
        """
        counts = self.counts(replicas)
        candidates = [r for r, members in self.members.items() if counts.get(r, 0) < len(members)]
        fewest = min(counts.get(rack, 0) for rack in candidates)
        return [rack for rack in candidates if counts.get(rack, 0) == fewest]

    def may_move(
        self, replicas: Collection[int], replication_factor: int, source: int, target: int
    ) -> bool:
        """Whether a well spread partition stays well spread if a replica moves to the target."""
        source_rack, target_rack = self.rack_of[source], self.rack_of[target]
        if source_rack == target_rack:
            return True
        counts = self.counts(replicas)
        target_count = counts.get(target_rack, 0)
        if target_count == 0:
            return True
        return counts[source_rack] > 1 and target_count < self.limit(replication_factor)

    def _capacity(self, limit: int) -> int:
        return sum(min(limit, len(members)) for members in self.members.values())
