"""Requested elections: ElectLeaders, preferred election znode, rebalance timer."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from kafkapy.common.cluster_state import NO_LEADER, LeaderAndIsr
from kafkapy.common.errors import ErrorCode
from kafkapy.common.topic_partition import TopicPartition
from kafkapy.controller.election import elect_preferred
from kafkapy.controller.events import (
    ElectionResult,
    ElectionType,
    ElectLeaders,
    PreferredElectionChange,
)
from kafkapy.controller.partition_state_machine import Strategy
from kafkapy.controller.partition_states import PartitionState
from kafkapy.controller.parts import ControllerParts

_log = logging.getLogger("kafka.controller.KafkaController")

_FAILURE_CODES = {
    ElectionType.PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    ElectionType.UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}


async def on_elect_leaders(parts: ControllerParts, event: ElectLeaders) -> None:
    """Answer ElectLeaders. The answer to a request for all partitions omits those that need no
    election.
    """
    if event.partitions is not None:
        event.reply(await elect(parts, event.partitions, event.election_type))
        return
    results = await elect(parts, list(parts.context.partitions()), event.election_type)
    event.reply({p: r for p, r in results.items() if r.error is not ErrorCode.ELECTION_NOT_NEEDED})


async def elect(
    parts: ControllerParts, partitions: Sequence[TopicPartition], election_type: ElectionType
) -> dict[TopicPartition, ElectionResult]:
    """Elect where it is needed and allowed. Returns the result of each partition."""
    results: dict[TopicPartition, ElectionResult] = {}
    electable = []
    for partition in partitions:
        refusal = _refusal(parts, partition, election_type)
        if refusal is None:
            electable.append(partition)
        else:
            results[partition] = refusal
    preferred = election_type is ElectionType.PREFERRED
    strategy = Strategy.PREFERRED if preferred else Strategy.UNCLEAN
    outcomes = await parts.partitions.handle(electable, PartitionState.ONLINE, strategy)
    for partition in electable:
        outcome = outcomes.get(partition, "the state of the partition allows no election")
        if isinstance(outcome, LeaderAndIsr):
            results[partition] = ElectionResult(ErrorCode.NONE, None, outcome.leader)
        else:
            results[partition] = ElectionResult(_FAILURE_CODES[election_type], outcome)
    return results


async def on_preferred_election_change(parts: ControllerParts) -> None:
    """Handle the list that a tool wrote to `/admin/preferred_replica_election`, then delete it."""
    watch = parts.watch(PreferredElectionChange())
    partitions = await parts.store.requests.preferred_elections(watch)
    if partitions is None:
        return
    results = await elect(parts, partitions, ElectionType.PREFERRED)
    for partition, result in results.items():
        if result.error not in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED):
            _log.warning("Partition %s failed to elect preferred leader: %s", partition, result)
    await parts.store.requests.remove_preferred_elections(parts.context.fence)


async def on_auto_rebalance(parts: ControllerParts) -> None:
    """Run preferred elections for brokers that lead too few of their preferred partitions."""
    context = parts.context
    by_preferred: dict[int, list[TopicPartition]] = {}
    for partition in context.partitions():
        replicas = context.assignment(partition).replicas
        if replicas and not context.is_queued_for_deletion(partition.topic):
            by_preferred.setdefault(replicas[0], []).append(partition)
    limit = parts.config.leader_imbalance_per_broker_percentage / 100
    for broker_id, partitions in sorted(by_preferred.items()):
        not_led_by_preferred = [
            partition
            for partition in partitions
            if (state := context.leadership.get(partition)) is not None
            and state.leader != broker_id
        ]
        if len(not_led_by_preferred) / len(partitions) <= limit:
            continue
        candidates = [p for p in not_led_by_preferred if _can_rebalance(parts, p)]
        if candidates:
            await elect(parts, candidates, ElectionType.PREFERRED)


def _refusal(
    parts: ControllerParts, partition: TopicPartition, election_type: ElectionType
) -> ElectionResult | None:
    context = parts.context
    if not context.has_partition(partition):
        return ElectionResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
    if context.is_queued_for_deletion(partition.topic):
        return ElectionResult(ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted")
    state = context.leadership.get(partition)
    leader = NO_LEADER if state is None else state.leader
    if election_type is ElectionType.PREFERRED:
        needed = leader != context.assignment(partition).replicas[0]
    else:
        needed = leader not in context.live_brokers or leader in context.shutting_down
    if needed:
        return None
    return ElectionResult(ErrorCode.ELECTION_NOT_NEEDED, None, leader)


def _can_rebalance(parts: ControllerParts, partition: TopicPartition) -> bool:
    context = parts.context
    assigned = context.assignment(partition)
    state = context.leadership[partition]
    online = elect_preferred(
        assigned.replicas, state, lambda replica: context.is_replica_online(replica, partition)
    )
    return online is not None and not assigned.is_being_reassigned
