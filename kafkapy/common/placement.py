"""Assigns the replicas of new partitions to brokers (`org.apache.kafka.admin.AdminUtils`).

Leaders are assigned round-robin from `start_index`. The followers of a partition come after its
leader, at a distance that begins at `shift` and grows by one after each round. With racks, the
order of brokers alternates between racks, and no rack gets a second replica before all have one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafkapy.common.errors import ApiError, ErrorCode


class BrokerPlace(NamedTuple):
    """A broker with its rack."""

    broker_id: int
    rack: str | None = None


def assign_replicas(
    brokers: Sequence[BrokerPlace],
    num_partitions: int,
    replication_factor: int,
    *,
    start_index: int,
    shift: int,
    start_partition: int = 0,
) -> dict[int, tuple[int, ...]]:
    """Replica lists for partitions `start_partition ..`; the first of each list is preferred.

    `start_index` and `shift` are below the number of brokers. The caller may choose them at random.

    Raises:
        ApiError: INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR, or UNKNOWN_SERVER_ERROR when only
            some brokers have a rack (Kafka's AdminOperationException).
    """
    if num_partitions <= 0:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0.")
    if replication_factor <= 0:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0."
        )
    if replication_factor > len(brokers):
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor: {replication_factor} larger than available brokers:"
            f" {len(brokers)}.",
        )
    racks = {broker.rack for broker in brokers}
    if None in racks and len(racks) > 1:
        raise ApiError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Not all brokers have rack information for replica rack aware assignment.",
        )
    ordered = list(brokers) if racks == {None} else alternate_racks(brokers)
    assignment = {}
    for partition in range(start_partition, start_partition + num_partitions):
        if partition > 0 and partition % len(ordered) == 0:
            shift += 1
        first = (partition + start_index) % len(ordered)
        replicas = _replicas(ordered, first, shift, replication_factor, len(racks))
        assignment[partition] = tuple(broker.broker_id for broker in replicas)
    return assignment


def alternate_racks(brokers: Sequence[BrokerPlace]) -> list[BrokerPlace]:
    """Brokers from each rack in turn: racks sorted, ids ascending within a rack."""
    by_rack: dict[str, list[BrokerPlace]] = {}
    for broker in sorted(brokers, key=lambda b: b.broker_id):
        by_rack.setdefault(broker.rack or "", []).append(broker)
    queues = [by_rack[rack] for rack in sorted(by_rack)]
    longest = max(len(queue) for queue in queues)
    return [queue[turn] for turn in range(longest) for queue in queues if turn < len(queue)]


def _replicas(
    ordered: Sequence[BrokerPlace], first: int, shift: int, count: int, racks: int
) -> list[BrokerPlace]:
    """The leader at `first` and `count - 1` followers. Without racks all brokers share one."""
    n = len(ordered)
    rack_aware = ordered[0].rack is not None
    chosen = [ordered[first]]
    step = 0
    while len(chosen) < count:
        distance = 1 + (shift * (racks if rack_aware else 1) + step) % (n - 1)
        candidate = ordered[(first + distance) % n]
        step += 1
        used_racks = {broker.rack for broker in chosen}
        rack_is_free = not rack_aware or candidate.rack not in used_racks
        if (rack_is_free or len(used_racks) == racks) and candidate not in chosen:
            chosen.append(candidate)
    return chosen
