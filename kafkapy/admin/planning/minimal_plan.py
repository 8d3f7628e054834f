"""Plans with as few moves as possible: `minimal_plan`.

A replica moves if its broker is not one of the given ones. If the plan balances, it also moves if
its partition has two replicas in one rack and none in another, or if its broker has more than its
share. Then leaders are balanced among the replicas, which copies nothing.

The same input always gives the same plan, and the plan for a planned cluster changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kafkapy.admin.cluster_replicas import Assignment
from kafkapy.admin.planning.leader_balance import Leaders
from kafkapy.admin.planning.rack_spread import RackSpread
from kafkapy.admin.planning.replica_balance import ReplicaTable
from kafkapy.common.errors import ApiError, ErrorCode
from kafkapy.common.placement import BrokerPlace
from kafkapy.common.topic_partition import TopicPartition

REPLICATION_FACTOR_MAX: Final = 32767


def minimal_plan(
    current: Assignment,
    brokers: Sequence[BrokerPlace],
    *,
    replication_factor: int | None = None,
    balance: bool = True,
) -> dict[TopicPartition, tuple[int, ...]]:
    """Place the partitions of `current` on `brokers` with as few moves as possible.

    With `balance`, the replica and leader counts of brokers differ by at most one, as far as racks
    allow. Without it, only replicas that must leave their broker or are missing are placed, in the
    racks with fewest replicas of their partition, on the brokers with fewest. `replication_factor`
    replaces that of every partition.

    Raises:
        ApiError: INVALID_REPLICATION_FACTOR; or only some of the brokers have a rack.
    """
    _check(current, brokers, replication_factor)
    spread = RackSpread(brokers)
    table = ReplicaTable(spread)
    for tp in sorted(current):
        table.add(tp, current[tp], replication_factor or len(current[tp]))
    table.shrink()
    if balance:
        table.leave_racks()
    table.fill()
    if balance:
        table.balance()
    leaders = Leaders([broker.broker_id for broker in brokers])
    for tp, replicas in table.rows():
        leaders.add(tp, current[tp], replicas)
    leaders.choose_missing()
    if balance:
        leaders.balance()
    return dict(leaders.assignment())


def _check(
    current: Assignment, brokers: Sequence[BrokerPlace], replication_factor: int | None
) -> None:
    if replication_factor is not None and not 1 <= replication_factor <= REPLICATION_FACTOR_MAX:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "The replication factor must be between 1 and 32767 inclusive",
        )
    max_replicas = replication_factor or max(
        (len(replicas) for replicas in current.values()), default=0
    )
    if max_replicas > len(brokers):
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor: {max_replicas} larger than available brokers: {len(brokers)}.",
        )
    racks = {broker.rack for broker in brokers}
    if None in racks and len(racks) > 1:
        raise ApiError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Not all brokers have rack information for replica rack aware assignment.",
        )
